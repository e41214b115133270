"""Metrics of bandits: regret, and how often the best arm is missed.

Each metric is an observer of a driver or a loop. As in TF-Agents, its result is the
mean over the rounds `[B]` of the last call, so a program adds the results up itself;
`CumulativeRegretMetric` adds up all rounds since the last `reset`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import constraints
from tfrl.environments import native
from tfrl.metrics import tf_metric
from tfrl.specs import bandit_spec_utils
from tfrl.trajectories import trajectory as traj


class _LastMetric(tf_metric.TFStepMetric):
    """Base of metrics that are the mean of a number of each round of the last call."""

    def __init__(self, name: str, dtype: tf.DType) -> None:
        """Creates the metric.

        Args:
          name: The name in summaries.
          dtype: The dtype of the result.
        """
        super().__init__(name)
        self.dtype = tf.as_dtype(dtype)
        self._last = tf.Variable(0, dtype=self.dtype, trainable=False)

    @abc.abstractmethod
    def _values(self, trajectory: traj.Trajectory) -> tf.Tensor:
        """Returns the number of each round, `[B]`."""

    def call(self, trajectory: traj.Trajectory) -> traj.Trajectory:
        # A baseline may ask the environment, which has to take the round before.
        with tf.control_dependencies(tf.nest.flatten(trajectory.reward)):
            values = tf.cast(self._values(trajectory), tf.float64)
        self._last.assign(tf.cast(tf.reduce_mean(values), self.dtype))
        return trajectory

    def result(self) -> tf.Tensor:
        return tf.identity(self._last)

    def reset(self) -> None:
        self._last.assign(tf.zeros([], self.dtype))


class RegretMetric(_LastMetric):
    """The mean of a baseline's reward minus the reward, in the last rounds."""

    def __init__(
        self,
        baseline_reward_fn: Callable[[Any], tf.Tensor],
        name: str | None = "RegretMetric",
        dtype: tf.DType = tf.float32,
    ) -> None:
        """Creates the metric.

        Args:
          baseline_reward_fn: Returns the baseline's rewards `[B]` for observations.
          name: The name in summaries.
          dtype: The dtype of the result.
        """
        super().__init__(name or "RegretMetric", dtype)
        self._baseline_reward_fn = baseline_reward_fn

    def _values(self, trajectory: traj.Trajectory) -> tf.Tensor:
        reward = trajectory.reward
        if isinstance(reward, dict):
            reward = reward[bandit_spec_utils.REWARD_SPEC_KEY]
        baseline = tf.cast(self._baseline_reward_fn(trajectory.observation), tf.float64)
        return baseline - tf.cast(reward, tf.float64)


class SuboptimalArmsMetric(_LastMetric):
    """The share of the last rounds in which the action was not the baseline's."""

    def __init__(
        self,
        baseline_action_fn: Callable[[Any], tf.Tensor],
        name: str | None = "SuboptimalArmsMetric",
        dtype: tf.DType = tf.float32,
    ) -> None:
        """Creates the metric.

        Args:
          baseline_action_fn: Returns the baseline's actions `[B]` for observations.
          name: The name in summaries.
          dtype: The dtype of the result.
        """
        super().__init__(name or "SuboptimalArmsMetric", dtype)
        self._baseline_action_fn = baseline_action_fn

    def _values(self, trajectory: traj.Trajectory) -> tf.Tensor:
        best = self._baseline_action_fn(trajectory.observation)
        return tf.cast(best, tf.int64) != tf.cast(trajectory.action, tf.int64)


class ConstraintViolationsMetric(_LastMetric):
    """The share of the last rounds' actions that a constraint forbids."""

    def __init__(
        self,
        constraint: constraints.BaseConstraint,
        name: str | None = "ConstraintViolationsMetric",
        dtype: tf.DType = tf.float32,
    ) -> None:
        """Creates the metric.

        Args:
          constraint: The constraint; an action counts with one minus the probability
            that it is feasible.
          name: The name in summaries.
          dtype: The dtype of the result.
        """
        super().__init__(name or "ConstraintViolationsMetric", dtype)
        self._constraint = constraint

    def _values(self, trajectory: traj.Trajectory) -> tf.Tensor:
        feasible = self._constraint(trajectory.observation)
        return 1 - tf.gather(feasible, trajectory.action, batch_dims=1)


class DistanceFromGreedyMetric(_LastMetric):
    """The mean, in the last rounds, of the best estimate minus that of the action."""

    def __init__(
        self,
        estimated_reward_fn: Callable[[Any], tf.Tensor],
        name: str | None = "DistanceFromGreedyMetric",
        dtype: tf.DType = tf.float32,
    ) -> None:
        """Creates the metric.

        Args:
          estimated_reward_fn: Returns estimates `[B, A]` for observations.
          name: The name in summaries.
          dtype: The dtype of the result.
        """
        super().__init__(name or "DistanceFromGreedyMetric", dtype)
        self._estimated_reward_fn = estimated_reward_fn

    def _values(self, trajectory: traj.Trajectory) -> tf.Tensor:
        estimates = self._estimated_reward_fn(trajectory.observation)
        chosen = tf.gather(estimates, trajectory.action, batch_dims=1)
        return tf.reduce_max(estimates, axis=1) - chosen


class CumulativeRegretMetric(tf_metric.TFStepMetric):
    """The sum of the regrets in a bandit that knows its expected rewards.

    A round's regret is the largest expected reward minus that of the action, without
    the noise of the rewards. The result is the sum over the rounds of all members,
    divided by their number.
    """

    def __init__(
        self,
        environment: native.NativeEnvironment,
        name: str = "CumulativeRegretMetric",
        dtype: tf.DType = tf.float32,
    ) -> None:
        """Creates the metric.

        Args:
          environment: A bandit of `rounds.dynamics`, which the driver or loop steps.
          name: The name in summaries.
          dtype: The dtype of the result.

        Raises:
          ValueError: The environment does not know its regret.
        """
        super().__init__(name)
        state = environment.physical_state()
        if not (isinstance(state, dict) and "regret" in state):
            raise ValueError(
                f"environment: got a {type(environment).__name__} whose state has no "
                "regret, expected a bandit of rounds.dynamics; use RegretMetric."
            )
        self.dtype = tf.as_dtype(dtype)
        self._environment = environment
        self._sum = tf.Variable(0.0, dtype=tf.float64, trainable=False)

    def call(self, trajectory: traj.Trajectory) -> traj.Trajectory:
        """Adds the regrets of the round that the environment has just stepped."""
        regrets = tf.cast(self._environment.physical_state()["regret"], tf.float64)
        self._sum.assign_add(tf.reduce_sum(regrets))
        return trajectory

    def result(self) -> tf.Tensor:
        """Returns the sum of the regrets of all rounds, of one member on average."""
        size = self._environment.batch_size
        return tf.cast(self._sum / size, self.dtype)

    def reset(self) -> None:
        """Forgets all rounds."""
        self._sum.assign(0.0)
