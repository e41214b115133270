"""A policy that explores by adding temporally correlated noise to its actions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.policies import noise_policy, tf_policy
from tfrl.utils import ou_process, seeds

if TYPE_CHECKING:
    from tfrl.typing import types


class OUNoisePolicy(noise_policy.NoisePolicy):
    """Adds Ornstein-Uhlenbeck noise to another policy's actions.

    This is the exploration of DDPG (Lillicrap et al. 2016, arXiv:1509.02971, section
    7): each call of `action` sets the noise `x` to
    `(1 - ou_damping) x + N(0, ou_stddev^2)`. If the batch size is known when `action`
    runs or is traced, each entry of the batch has its own noise; otherwise all entries
    share the same noise. The noise continues from one episode to the next. State and
    `info` are those of the wrapped policy, so a log-probability in `info` is that of
    the action without noise.

    The noise is kept in variables, not in the policy state, so that it stays correlated
    in a loop that does not pass the policy state on. Therefore two calls with the same
    seed return different actions, but two new policies with the same seed act alike. A
    checkpoint of the policy holds the noise.
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
    ) -> None:
        """Creates the policy.

        Args:
          wrapped_policy: A policy whose actions are all floats.
          ou_stddev: Standard deviation of the Gaussian number that each call adds.
          ou_damping: In [0, 1]; 0 is a random walk, 1 uncorrelated Gaussian noise.
          clip: Whether `action` clips to the bounds of the action spec.
          name: The module's name.
          seed: See `TFPolicy`.

        Raises:
          ValueError: An action is discrete, `ou_stddev` is negative, or `ou_damping`
            is outside [0, 1].
        """
        ou_process.check_ou_parameters(ou_damping, ou_stddev, prefix="ou_")
        super().__init__(wrapped_policy, clip=clip, name=name, seed=seed)
        self._ou_stddev = ou_stddev
        self._ou_damping = ou_damping
        # The processes by batch shape, which is not known before the first action.
        self._processes: dict[str, list[ou_process.OUProcess]] = {}

    def _add_noise(
        self, action: types.NestedTensor, seed: tf.Tensor
    ) -> types.NestedTensor:
        flat = tf.nest.flatten(action)
        inner_rank = tf.nest.flatten(self._action_spec)[0].shape.rank
        outer = flat[0].shape[: flat[0].shape.rank - inner_rank]
        processes = self._processes_for(outer.as_list())
        return tf.nest.pack_sequence_as(
            action,
            [
                value + process(one_seed)
                for value, process, one_seed in zip(
                    flat, processes, seeds.split_seed(seed, len(flat)), strict=True
                )
            ],
        )

    def _processes_for(self, batch: list[int | None]) -> list[ou_process.OUProcess]:
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

    def _new_process(self, shape: list[int], dtype: Any) -> ou_process.OUProcess:
        return ou_process.OUProcess(
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
