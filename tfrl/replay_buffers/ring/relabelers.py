"""Relabelers, which write goals into time steps, in a graph or on the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.compilation.python_calls import host_calls
from tfrl.environments import py_environment, wrappers
from tfrl.trajectories import time_step as ts

_ACHIEVED, _DESIRED = "achieved_goal", "desired_goal"
_NO_GOALS = "learn without hindsight (goals_per_step=0)"

# The most steps whose rewards are compared, and the share that rounding may change.
_CHECKED, _ROUNDED = 1_000, 0.02

RewardFn = Callable[[Any, Any], Any]


class HostReward:
    """A reward function of arrays, such as Gymnasium-Robotics' `compute_reward`.

    It is called on the host, once for a batch, with goals `[N, ...]` and an empty
    `info`; it returns the rewards `[N]`. The episodes' own infos are not stored. Its
    exceptions stay as they are, with a note that says how it was called.
    """

    def __init__(self, compute_reward: Callable[[Any, Any, Any], Any]) -> None:
        """Wraps `compute_reward(achieved_goal, desired_goal, info)`."""
        self._compute = compute_reward
        self.channel = host_calls.CallChannel()

    def __call__(self, achieved_goal: tf.Tensor, desired_goal: tf.Tensor) -> tf.Tensor:
        """Returns the rewards for goals `[N, *shape]`, float32 `[N]`."""

        def compute(*goals: np.ndarray) -> list[np.ndarray]:
            achieved, desired = map(np.array, goals)  # Copies; see `host_call`.
            try:
                reward = np.asarray(self._compute(achieved, desired, {}))
            except Exception as error:
                error.add_note(
                    "compute_reward raised it for batches of goals, of shape "
                    f"{desired.shape}, and an empty info; compute rewards of shape "
                    f"{desired.shape[:1]} from the goals alone."
                )
                raise
            _check_rewards(reward, desired.shape)
            return [reward]

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

    def check_collected(self, frames: Any) -> None:
        """Raises a ValueError if the function differs from the collected rewards.

        Some of the steps may differ, where rounding takes a distance over a threshold.

        Args:
          frames: The first frames of a run, a `Trajectory` `[B, T, ...]`.
        """
        # The reward in a frame belongs to the goals in the next one.
        goes_on = np.asarray(frames.step_type)[:, :-1] != ts.StepType.LAST
        batches = [
            tf.constant(np.asarray(frames.observation[key])[:, 1:][goes_on][:_CHECKED])
            for key in (_ACHIEVED, _DESIRED)
        ]
        own = np.asarray(frames.reward)[:, :-1][goes_on][:_CHECKED] + 0.0  # No -0.
        if not len(own):
            return
        # Calls on the host need a graph.
        rewards = tf.function(self._rewards, autograph=False)(*batches)
        given = np.asarray(rewards, np.float32) + 0.0
        differs = ~np.isclose(given, own, rtol=1e-3, atol=1e-4)
        if differs.mean() > _ROUNDED:
            first = differs.argmax()
            raise ValueError(
                f"compute_reward (reward_fn): got {given[first]:g} for the goals of a "
                f"step that was rewarded with {own[first]:g}, and differences in "
                f"{differs.sum():,} of the first {len(own):,} steps, expected the "
                "rewards of the environment's step; let step return compute_reward of "
                "its goals, without other terms, and change rewards by no wrapper."
            )

    def _rewards(self, achieved: tf.Tensor, desired: tf.Tensor) -> tf.Tensor:
        """Returns the rewards for goals `[N, *shape]`, `[N]`."""
        reward = tf.convert_to_tensor(self._reward_fn(achieved, desired))
        if not reward.shape.is_compatible_with(desired.shape[:1]):
            raise ValueError(_other_shape(reward.shape, desired.shape))
        return reward

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
        reward = self._rewards(*batches)
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

    def check_collected(self, frames: Any) -> None:
        """Accepts all rewards, since the wrapper reads no goal from a frame."""

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
    spec = environment.observation_spec()
    shapes = tree.map_structure(lambda each: tuple(each.shape), spec)
    has_goals = isinstance(spec, Mapping) and {_ACHIEVED, _DESIRED} <= spec.keys()
    got, remedy = (
        ("one without compute_reward", "write it, or give Hindsight such a function")
        if has_goals
        else (f"one without goals, whose observation has shape {shapes}", _NO_GOALS)
    )
    raise ValueError(
        f"environment: got {got}, expected a GoalReplayEnvWrapper or an environment "
        f"with {_ACHIEVED!r} and {_DESIRED!r} in its observation and with "
        f"compute_reward(achieved_goal, desired_goal, info), in this process; {remedy}."
    )


def _check_rewards(reward: np.ndarray, goals: Sequence[int]) -> None:
    """Raises a ValueError unless there is one finite number for each of the goals."""
    if reward.shape != tuple(goals[:1]):
        raise ValueError(_other_shape(reward.shape, goals))
    if reward.dtype.kind not in "biuf" or not np.isfinite(reward).all():
        raise ValueError(
            f"compute_reward: got {reward[:3]} of {reward.dtype}, expected finite "
            "numbers; correct it for the goals of all steps of an episode."
        )


def _other_shape(reward: Sequence[int], goals: Sequence[int]) -> str:
    """Returns the error for rewards of a wrong shape."""
    return (
        f"compute_reward (reward_fn): got rewards of shape {reward} for goals of shape "
        f"{goals}, expected {goals[:1]}; return one number for each goal, such as by "
        "the norm of achieved_goal - desired_goal over axis=-1."
    )
