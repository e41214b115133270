"""`RandomBanditEnvironment`, whose observations and rewards are of distributions."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.environments import bandit_tf_environment
from tfrl.distributions import sampling
from tfrl.trajectories import time_step as ts


class RandomBanditEnvironment(bandit_tf_environment.BanditTFEnvironment):
    """Draws observations and rewards; actions have no effect."""

    def __init__(
        self,
        observation_distribution: Any,
        reward_distribution: Any,
        action_spec: Any = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Makes the environment.

        Args:
          observation_distribution: A distribution with batch shape `[B]`;
            `tfp.distributions.Independent` makes batch dimensions part of the event.
          reward_distribution: A distribution of float32 numbers with batch shape `[B]`.
          action_spec: The nest of specs of the actions, without the batch.
          seed: See `BanditTFEnvironment`.

        Raises:
          ValueError: A distribution has another shape or dtype.
        """
        shape = observation_distribution.batch_shape
        if shape.rank != 1:
            raise ValueError(
                f"observation_distribution: got batch shape {shape}, expected [B]; "
                "tfp.distributions.Independent makes dimensions part of the event."
            )
        of_reward = reward_distribution.batch_shape, reward_distribution.event_shape
        if of_reward != (shape, []) or reward_distribution.dtype != tf.float32:
            raise ValueError(
                f"reward_distribution: got batch shape {of_reward[0]}, event shape "
                f"{of_reward[1]} and {reward_distribution.dtype}, expected {shape}, () "
                "and float32, a number for each observation; use such a distribution."
            )
        self._of_observation = observation_distribution
        self._of_reward = reward_distribution
        observation_spec = tf.TensorSpec(
            observation_distribution.event_shape, observation_distribution.dtype
        )
        super().__init__(
            ts.time_step_spec(observation_spec), action_spec, shape[0], seed=seed
        )

    def _apply_action(self, action: Any) -> tf.Tensor:
        del action
        return sampling.sample(self._of_reward, self._next_seed())

    def _observe(self) -> tf.Tensor:
        return sampling.sample(self._of_observation, self._next_seed())
