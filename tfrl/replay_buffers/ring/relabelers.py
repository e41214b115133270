"""Relabelers, which write goals into time steps, in a graph or on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.compilation import host_calls
from tfrl.environments import py_environment, wrappers
from tfrl.trajectories import time_step as ts

_ACHIEVED, _DESIRED = "achieved_goal", "desired_goal"

RewardFn = Callable[[Any, Any], Any]


class HostReward:
    """A reward function of arrays, such as Gymnasium-Robotics' `compute_reward`.

    It is called on the host, once for a batch, with goals `[N, ...]` and an empty
    `info`; it returns the rewards `[N]`. The episodes' own infos are not stored.
    """

    def __init__(self, compute_reward: Callable[[Any, Any, Any], Any]) -> None:
        """Wraps `compute_reward(achieved_goal, desired_goal, info)`."""
        self._compute = compute_reward
        self.channel = host_calls.CallChannel()

    def __call__(self, achieved_goal: tf.Tensor, desired_goal: tf.Tensor) -> tf.Tensor:
        """Returns the rewards for goals `[N, *shape]`, float32 `[N]`."""

        def compute(*goals: np.ndarray) -> list[np.ndarray]:
            achieved, desired = map(np.array, goals)  # Copies; see `host_call`.
            reward = self._compute(achieved, desired, {})
            return [np.broadcast_to(reward, len(desired))]

        spec = tf.TensorSpec(desired_goal.shape[:1], tf.float32)
        return host_calls.call(
            compute, [achieved_goal, desired_goal], [spec], self.channel, name="reward"
        )[0]


class GoalRelabeler:
    """Relabels dictionaries with `achieved_goal` and `desired_goal`."""

    def __init__(self, reward_fn: RewardFn) -> None:
        """Takes `reward_fn(achieved_goal, desired_goal)`, of tensors `[N, *shape]`."""
        self._reward_fn = reward_fn

    def check(self, observation_spec: Any) -> None:
        """Raises a ValueError unless both goals are tensors of one shape and dtype."""
        keys = sorted(observation_spec) if isinstance(observation_spec, dict) else None
        if keys is None or not {_ACHIEVED, _DESIRED} <= set(keys):
            raise ValueError(
                f"data_spec.observation: got {keys or observation_spec}, expected a "
                f"dictionary with {_ACHIEVED!r} and {_DESIRED!r}; wrap the environment "
                "in a GoalReplayEnvWrapper, and use Hindsight.of(environment)."
            )
        goals = [observation_spec[key] for key in (_ACHIEVED, _DESIRED)]
        are_tensors = all(isinstance(goal, tf.TensorSpec) for goal in goals)
        if not are_tensors or len({(goal.shape, goal.dtype) for goal in goals}) > 1:
            raise ValueError(
                f"data_spec.observation: got {_ACHIEVED!r} of {goals[0]} and "
                f"{_DESIRED!r} of {goals[1]}, expected two tensors of one shape and "
                "dtype; wrap the environment in a GoalReplayEnvWrapper, which may "
                "convert one to the other."
            )

    def __call__(
        self, reached: ts.TimeStep, steps: ts.TimeStep, following: ts.TimeStep
    ) -> tuple[Any, tf.Tensor, tf.Tensor]:
        """Returns the observations of `steps`, the rewards and the discounts.

        Args:
          reached: The steps that reached the goals. Their shapes, such as `[B, 1,
            ...]`, can be broadcast to the shapes of `steps`.
          steps: Steps `[B, T, ...]` of the same episodes.
          following: The steps after `steps`, `[B, T, ...]`, to which the rewards and
            discounts belong.
        """
        desired = steps.observation[_DESIRED]
        goal = tf.broadcast_to(reached.observation[_ACHIEVED], tf.shape(desired))
        goal = tf.ensure_shape(goal, desired.shape)
        rank = following.reward.shape.rank
        size = desired.shape[:rank].num_elements()
        batches = [
            tf.reshape(goals, [-1 if size is None else size, *desired.shape[rank:]])
            for goals in (following.observation[_ACHIEVED], goal)
        ]
        reward = tf.convert_to_tensor(self._reward_fn(*batches))
        if not reward.shape.is_compatible_with([size]):
            raise ValueError(
                f"reward_fn: got rewards of shape {reward.shape} for goals of shape "
                f"{batches[0].shape}, expected [{size}]; return one number for each "
                "goal, such as by tf.norm(achieved_goal - desired_goal, axis=-1)."
            )
        reward = tf.cast(tf.reshape(reward, tf.shape(following.reward)), tf.float32)
        return {**steps.observation, _DESIRED: goal}, reward, following.discount


class GoalWrapperRelabeler:
    """Relabels by the two functions of a `GoalReplayEnvWrapper`, on the host.

    The functions get the steps with the wrapper's observations, as agents do: batches
    `[N, ...]` if the environment is batched, else one step after the other.
    """

    def __init__(self, environment: wrappers.GoalReplayEnvWrapper) -> None:
        """Takes the functions of `environment`."""
        self._env = environment
        self.channel = host_calls.CallChannel()

    def check(self, observation_spec: Any) -> None:
        """Accepts all observations, since the wrapper knows where their goals are."""

    def __call__(
        self, reached: ts.TimeStep, steps: ts.TimeStep, following: ts.TimeStep
    ) -> tuple[Any, tf.Tensor, tf.Tensor]:
        """See `GoalRelabeler`."""
        rank = steps.step_type.shape.rank
        # The graph keeps the function, which must not keep the graph's tensors.
        structure = tf.nest.map_structure(lambda _: None, steps)
        size = len(tf.nest.flatten(steps))

        def batch(arrays: Sequence[np.ndarray], shapes: Sequence[Any]) -> Any:
            leaves = [  # Copies; see `host_call`.
                np.array(np.broadcast_to(array, shape)).reshape(-1, *shape[rank:])
                for array, shape in zip(arrays, shapes, strict=True)
            ]
            return tree.unflatten_as(structure, leaves)

        def relabel(*arrays: np.ndarray) -> list[Any]:
            shapes = [array.shape for array in arrays[size : 2 * size]]
            batches = [batch(arrays[i * size :][:size], shapes) for i in range(3)]
            outer = shapes[0][:rank]
            return [
                np.reshape(leaf, (*outer, *np.shape(leaf)[1:]))
                for leaf in tree.flatten(self._relabel(*batches))
            ]

        given = steps.observation, following.reward, following.discount
        specs = [tf.TensorSpec(x.shape, x.dtype) for x in tf.nest.flatten(given)]
        inputs = tf.nest.flatten((reached, steps, following))
        results = host_calls.call(relabel, inputs, specs, self.channel, name="relabel")
        return tf.nest.pack_sequence_as(given, results)

    def _relabel(
        self, reached: ts.TimeStep, steps: ts.TimeStep, following: ts.TimeStep
    ) -> tuple[Any, Any, Any]:
        """Returns observations, rewards and discounts, `[N, ...]` like the steps."""

        def rewrite(*parts: ts.TimeStep) -> tuple[Any, Any, Any]:
            goal = self._env.get_goal_from_trajectory(parts[0])
            step, after = (
                self._env.get_trajectory_with_goal(part, goal) for part in parts[1:]
            )
            return step.observation, after.reward, after.discount

        parts = (reached, steps, following)
        if self._env.batched:
            return rewrite(*parts)
        rows = [
            rewrite(*tree.map_structure(lambda x, i=i: x[i], parts))
            for i in range(len(steps.step_type))
        ]
        return tree.map_structure(lambda *leaves: np.stack(leaves), *rows)


def of_environment(environment: Any) -> RewardFn | GoalWrapperRelabeler:
    """Returns a relabeler with an environment's functions; see `Hindsight.of`."""
    is_on_host = isinstance(environment, py_environment.PyEnvironment) or getattr(
        environment, "calls_python", False
    )
    part: Any = getattr(environment, "pyenv", environment)
    while part is not None:
        if isinstance(part, wrappers.GoalReplayEnvWrapper):
            return GoalWrapperRelabeler(part)
        compute = getattr(part, "compute_reward", None)
        if compute is not None:
            return HostReward(compute) if is_on_host else compute
        members = getattr(part, "envs", None)
        inner = getattr(part, "wrapped_env", lambda: None)
        part = members[0] if members else inner()
    raise ValueError(
        f"environment: got {environment!r}, expected a GoalReplayEnvWrapper or an "
        "environment with compute_reward, in this process; give Hindsight a "
        "function of the achieved and the desired goals."
    )
