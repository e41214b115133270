"""`TrajectoryReplay` applies a policy to recorded trajectories."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory as trajectory_lib
from tfrl.utils import common, nest_utils
from tfrl.utils.random_numbers import seeds


class TrajectoryReplay:
    """Applies a policy to the observations of recorded trajectories.

    The policy sees each recorded time step in turn and keeps its state from step to
    step. Its actions are returned; the trajectory's own actions are ignored. Call `run`
    in a `tf.function` to make it one graph.
    """

    def __init__(self, policy: Any, time_major: bool = False):
        """Makes a replay of `policy`.

        Args:
          policy: A `TFPolicy`.
          time_major: Whether trajectories and results are `[T, B, ...]`, else
            `[B, T, ...]`.

        Raises:
          TypeError: If `policy` is not a `TFPolicy`.
        """
        names = ("action", "time_step_spec", "action_spec", "info_spec")
        if not all(hasattr(policy, name) for name in names):
            raise TypeError(
                f"policy: got {policy!r} of type {type(policy).__name__}, expected a "
                "TFPolicy; give an agent's policy or collect_policy."
            )
        self._policy = policy
        self._time_major = time_major

    def run(
        self,
        trajectory: trajectory_lib.Trajectory,
        policy_state: Any = None,
        *,
        seed: int | tf.Tensor | None = None,
    ) -> tuple[Any, Any, Any]:
        """Applies the policy to every step of `trajectory`.

        A trajectory does not hold the reward and discount of its first time step, so
        they are 0 and 1. Each later time step has the reward and discount of the frame
        before.

        Args:
          trajectory: Tensors `[B, T, ...]`, or `[T, B, ...]` if `time_major`, with the
            observations, rewards and discounts of the policy's `time_step_spec`.
            Actions and policy info may have any structure.
          policy_state: The state before the first step, `[B, ...]`; None for the
            initial state.
          seed: An integer, or an integer tensor `[2]`, that determines all random
            numbers; None draws from the policy's own stream.

        Returns:
          Actions and policy infos, with the outer dimensions of the trajectory, and the
          policy's state after the last step, `[B, ...]`.

        Raises:
          TypeError: If a dtype differs from the policy's spec.
          ValueError: If a structure or shape differs, or there are not two outer
            dimensions.
        """
        steps = self._time_major_steps(trajectory)
        num_steps, batch_size = self._outer_dims(steps.step_type)
        if policy_state is None:
            policy_state = self._policy.get_initial_state(batch_size)
        else:
            nest_utils.assert_same_structure(
                policy_state, self._policy.policy_state_spec
            )
        outputs = tf.nest.map_structure(
            lambda spec: tf.TensorArray(spec.dtype, num_steps),
            (self._policy.action_spec, self._policy.info_spec),
        )

        def body(t: tf.Tensor, state: Any, outputs: Any) -> tuple[Any, Any, Any]:
            step = self._policy.action(
                tf.nest.map_structure(lambda x: x[t], steps), state, _fold_in(seed, t)
            )
            outputs = tf.nest.map_structure(
                lambda array, value: array.write(t, value),
                outputs,
                (step.action, step.info),
            )
            return t + 1, step.state, outputs

        _, policy_state, outputs = tf.while_loop(
            lambda t, *_: t < num_steps,
            body,
            (tf.constant(0), policy_state, outputs),
        )
        actions, infos = tf.nest.map_structure(self._stack, outputs)
        return actions, infos, policy_state

    def _time_major_steps(self, trajectory: trajectory_lib.Trajectory) -> ts.TimeStep:
        """Returns the time steps of the trajectory, `[T, B, ...]`."""
        steps = ts.TimeStep(
            trajectory.step_type,
            trajectory.reward,
            trajectory.discount,
            trajectory.observation,
        )
        steps = tf.nest.map_structure(tf.convert_to_tensor, steps)
        outer_rank = nest_utils.get_outer_rank(steps, self._policy.time_step_spec)
        if outer_rank != 2:
            order = "[T, B, ...]" if self._time_major else "[B, T, ...]"
            raise ValueError(
                f"trajectory: got {outer_rank} outer dimensions, expected two, "
                f"{order}; stack the frames of an episode, or take them from a replay "
                "buffer."
            )
        if not self._time_major:
            steps = tf.nest.map_structure(common.transpose_batch_time, steps)
        return steps._replace(
            reward=tf.nest.map_structure(lambda x: _delay(x, tf.zeros), steps.reward),
            discount=_delay(steps.discount, tf.ones),
        )

    def _outer_dims(self, step_type: tf.Tensor) -> tuple[Any, Any]:
        dynamic = tf.unstack(tf.shape(step_type))
        num_steps, batch_size = (
            size if known is None else known
            for size, known in zip(dynamic, step_type.shape, strict=True)
        )
        return num_steps, batch_size

    def _stack(self, array: tf.TensorArray) -> tf.Tensor:
        stacked = array.stack()
        return stacked if self._time_major else common.transpose_batch_time(stacked)


def _delay(values: tf.Tensor, fill: Any) -> tf.Tensor:
    """Shifts `[T, ...]` by one step; the first step becomes `fill`."""
    return tf.concat([fill(tf.shape(values[:1]), values.dtype), values[:-1]], axis=0)


def _fold_in(seed: int | tf.Tensor | None, t: tf.Tensor) -> tf.Tensor | None:
    if seed is None:
        return None
    return tf.random.fold_in(
        seeds.as_seed(seed), tf.cast(t, tf.int64), alg=seeds.ALGORITHM
    )
