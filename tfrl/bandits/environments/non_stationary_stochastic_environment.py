"""Bandits in TensorFlow whose observations and rewards follow the time."""

from __future__ import annotations

import abc
from typing import Any

import tensorflow as tf

from tfrl.bandits.environments import bandit_tf_environment
from tfrl.distributions import sampling
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts


class EnvironmentDynamics(tf.Module, abc.ABC):
    """How observations and rewards follow the time; its variables hold what changes."""

    @property
    @abc.abstractmethod
    def batch_size(self) -> int:
        """The number of members, `B`."""

    @property
    @abc.abstractmethod
    def observation_spec(self) -> Any:
        """The nest of specs of the observations, without the batch."""

    @property
    @abc.abstractmethod
    def action_spec(self) -> Any:
        """The spec of the actions, without the batch."""

    @abc.abstractmethod
    def observation(self, env_time: tf.Tensor) -> Any:
        """Returns the observations at a time, `[B, ...]`."""

    @abc.abstractmethod
    def reward(self, observation: Any, env_time: tf.Tensor) -> tf.Tensor:
        """Returns the rewards of all arms, `[B, A]`, for observations at a time."""


class LinearDynamics(EnvironmentDynamics):
    """Rewards that are linear in the observation, plus a number for each arm.

    A subclass changes the parameters in `_advance`, before each reward.
    """

    def __init__(
        self,
        observation_distribution: Any,
        observation_to_reward_distribution: Any,
        additive_reward_distribution: Any,
        *,
        seed: int | None = None,
    ) -> None:
        """Draws the first parameters.

        Args:
          observation_distribution: A TFP distribution of batch shape `[B, d]`.
          observation_to_reward_distribution: Of batch shape `[d, A]`.
          additive_reward_distribution: Of batch shape `[A]`, float32.
          seed: The seed of all draws; None follows `tf.random.set_seed`.

        Raises:
          ValueError: A shape or dtype is another.
        """
        super().__init__()
        shape = observation_distribution.batch_shape
        arms = additive_reward_distribution.batch_shape
        matrix = observation_to_reward_distribution.batch_shape
        dtype = additive_reward_distribution.dtype
        for name, given, fits, expected in (
            ("observation_distribution", shape, shape.rank == 2, "[B, d]"),
            ("additive_reward_distribution", arms, arms.rank == 1, "[A]"),
            (
                "observation_to_reward_distribution",
                matrix,
                matrix == [*shape[1:], *arms],
                "[d, A]",
            ),
        ):
            if not fits:
                raise ValueError(
                    f"{name}: got batch shape {given}, expected {expected}; it must "
                    f"have batch shape with length {expected.count(',') + 1}, and the "
                    "same numbers of features and arms as the others."
                )
        if dtype != tf.float32:
            raise ValueError(
                f"additive_reward_distribution: got dtype {dtype}, expected float32; "
                "change it."
            )
        self._observation_distribution = observation_distribution
        self._matrix_distribution = observation_to_reward_distribution
        self._additive_distribution = additive_reward_distribution
        self._seeds = bandit_tf_environment.SeedRow(seed)
        self._current_observation_to_reward = tf.Variable(
            self._draw(observation_to_reward_distribution), trainable=False
        )
        self._current_additive_reward = tf.Variable(
            self._draw(additive_reward_distribution), trainable=False
        )

    @property
    def batch_size(self) -> int:
        """The number of members, `B`."""
        return int(self._observation_distribution.batch_shape[0])

    @property
    def observation_spec(self) -> tf.TensorSpec:
        """The spec of an observation, `[d]`."""
        distribution = self._observation_distribution
        return tf.TensorSpec(distribution.batch_shape[1:], distribution.dtype)

    @property
    def action_spec(self) -> tensor_spec.BoundedTensorSpec:
        """The spec of an action, int32 from 0 to `A - 1`."""
        arms = int(self._additive_distribution.batch_shape[0])
        return tensor_spec.BoundedTensorSpec([], tf.int32, 0, arms - 1, name="action")

    def observation(self, env_time: tf.Tensor) -> tf.Tensor:
        """Returns observations, `[B, d]`."""
        del env_time
        return self._draw(self._observation_distribution)

    def reward(self, observation: tf.Tensor, env_time: tf.Tensor) -> tf.Tensor:
        """Changes the parameters, and returns the rewards of all arms, `[B, A]`."""
        self._advance(env_time)
        return self._rewards(observation, self._current_additive_reward)

    def compute_optimal_reward(self, observation: tf.Tensor) -> tf.Tensor:
        """Returns the largest expected rewards of the last round, `[B]`."""
        return tf.reduce_max(self._expected(observation), axis=-1)

    def compute_optimal_action(self, observation: tf.Tensor) -> tf.Tensor:
        """Returns the arms with these rewards, int32 `[B]`."""
        expected = self._expected(observation)
        return tf.argmax(expected, axis=-1, output_type=tf.int32)

    @abc.abstractmethod
    def _advance(self, env_time: tf.Tensor) -> None:
        """Changes the parameters for the rewards at a time."""

    def _expected(self, observation: tf.Tensor) -> tf.Tensor:
        """Returns the expected rewards of all arms in the last round, `[B, A]`."""
        return self._rewards(observation, self._current_additive_reward)

    def _rewards(self, observation: tf.Tensor, additive: Any) -> tf.Tensor:
        matrix = self._current_observation_to_reward.read_value()
        return tf.matmul(observation, matrix) + additive

    def _draw(self, distribution: Any) -> tf.Tensor:
        return sampling.sample(distribution, self._seeds.next())


class NonStationaryStochasticEnvironment(bandit_tf_environment.BanditTFEnvironment):
    """A bandit of an `EnvironmentDynamics`, whose time counts the members' rounds."""

    def __init__(self, environment_dynamics: EnvironmentDynamics) -> None:
        """Starts at time 0."""
        dynamics = environment_dynamics
        self._environment_dynamics = dynamics
        super().__init__(
            ts.time_step_spec(dynamics.observation_spec),
            dynamics.action_spec,
            dynamics.batch_size,
        )
        self._env_time = tf.Variable(0, dtype=tf.int64, trainable=False)

    @property
    def environment_dynamics(self) -> EnvironmentDynamics:
        """The dynamics."""
        return self._environment_dynamics

    def _observe(self) -> Any:
        return self._environment_dynamics.observation(self._env_time.read_value())

    def _apply_action(self, action: Any) -> tf.Tensor:
        now = self._env_time.read_value()
        observation = self._latest.read().observation
        rewards = self._environment_dynamics.reward(observation, now)
        self._env_time.assign_add(self.batch_size)
        return tf.gather(rewards, tf.cast(action, tf.int32), batch_dims=1)
