"""A policy that explores by adding temporally correlated noise to its actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any

import tensorflow as tf

from tfrl.policies import bases, tf_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common


class OUNoisePolicy(bases.NoisePolicy):
    """Adds Ornstein-Uhlenbeck noise to another policy's actions.

    This is the exploration of DDPG (Lillicrap et al. 2016, arXiv:1509.02971, section
    7): each call of `action` sets the noise `x` to `(1 - ou_damping) x + N(0,
    ou_stddev^2)`. If the batch size is known when `action` runs or is traced, each
    entry of the batch has its own noise; otherwise all entries share the same noise.
    The noise continues from one episode to the next. State and `info` come from the
    wrapped policy, so a log-probability in `info` belongs to the action without noise.

    The noise is kept in variables, not in the policy state, so that it stays correlated
    in a loop that does not pass the policy state on. `prepare`, which the training
    loops call, makes these variables; otherwise the first action does. Therefore two
    calls with the same seed return different actions, but two new policies with the
    same seed return the same actions. A checkpoint of the policy holds the noise.
    """

    def __init__(
        self,
        wrapped_policy: tf_policy.TFPolicy,
        ou_stddev: types.Float = 1.0,
        ou_damping: types.Float = 1.0,
        clip: bool = True,
        name: str | None = None,
        *,
        seed: int | None = None,
        scaled_to_spec: bool = False,
        reset_at_episode_start: bool = False,
    ) -> None:
        """Creates the policy.

        Args:
          wrapped_policy: A policy whose actions are all floats.
          ou_stddev: Standard deviation of the Gaussian number that each call adds.
          ou_damping: In [0, 1]; 0 is a random walk, 1 uncorrelated Gaussian noise.
          clip: Whether `action` clips to the bounds of the action spec.
          name: The module's name.
          seed: See `TFPolicy`.
          scaled_to_spec: See `NoisePolicy`.
          reset_at_episode_start: Whether the noise starts from zero in each episode, as
            in the paper; otherwise it continues from one episode to the next.

        Raises:
          ValueError: An action is discrete, `ou_stddev` is negative, or `ou_damping`
            is outside [0, 1].
        """
        common.check_ou_parameters(ou_damping, ou_stddev, prefix="ou_")
        super().__init__(
            wrapped_policy,
            clip=clip,
            name=name,
            seed=seed,
            scaled_to_spec=scaled_to_spec,
        )
        self._ou_stddev = ou_stddev
        self._ou_damping = ou_damping
        self._reset_at_episode_start = reset_at_episode_start
        # Maps batch shapes, which are not known before the first action, to noise
        # processes.
        self._processes: dict[str, list[common.OUProcess]] = {}

    def prepare(self, batch_size: int | None) -> None:
        """Makes the noise for a batch of this size; see `TFPolicy.prepare`."""
        super().prepare(batch_size)
        self._processes_for([] if batch_size is None else [batch_size])

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        if self._reset_at_episode_start:
            first = tf.convert_to_tensor(time_step.is_first())
            if not first.shape.is_fully_defined():
                # All entries share one noise.
                first = tf.reduce_any(first, keepdims=True)
            for process in self._processes_for(first.shape.as_list()):
                process.reset(first)
        return super()._action(time_step, policy_state, seed)

    def _draw_noise(
        self, like: Sequence[tf.Tensor], noise_seeds: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        inner_rank = tf.nest.flatten(self._action_spec)[0].shape.rank
        outer = like[0].shape[: like[0].shape.rank - inner_rank]
        processes = self._processes_for(outer.as_list())
        return [
            process(seed) for process, seed in zip(processes, noise_seeds, strict=True)
        ]

    def _processes_for(self, batch: list[int | None]) -> list[common.OUProcess]:
        """Returns the noise processes for a batch shape, one for each action."""
        outer = [size if size is not None else 1 for size in batch]
        key = "x".join(map(str, outer))
        if key not in self._processes:
            self._processes[key] = _outside_of_graphs(
                lambda: [
                    self._new_process([*outer, *spec.shape], spec.dtype)
                    for spec in tf.nest.flatten(self._action_spec)
                ]
            )
        return self._processes[key]

    def _new_process(self, shape: list[int], dtype: Any) -> common.OUProcess:
        return common.OUProcess(
            tf.zeros(shape, dtype), self._ou_damping, self._ou_stddev, seed=0
        )


@tf.autograph.experimental.do_not_convert
def _outside_of_graphs(make: Callable[[], Any]) -> Any:
    """Calls `make` outside of all graphs, so that no graph owns its variables."""
    if tf.executing_eagerly():
        return make()
    # A `tf.function` forbids new variables in all but its first trace, even under
    # `tf.init_scope`, but only in the thread that traces. So another thread makes them.
    with futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()
