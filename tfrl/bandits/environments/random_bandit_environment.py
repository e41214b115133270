"""A bandit whose observations and rewards are drawn, whatever the action is."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.environments import bandit_tf_environment
from tfrl.distributions import sampling
from tfrl.trajectories import time_step as ts


class RandomBanditEnvironment(bandit_tf_environment.BanditTFEnvironment):
    """Draws observations and rewards from TFP distributions, with a seed."""

    def __init__(
        self,
        observation_distribution: Any,
        reward_distribution: Any,
        action_spec: Any = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Stores the distributions.

        Args:
          observation_distribution: Of batch shape `[B]`.
          reward_distribution: Of batch shape `[B]`, and scalars of float32.
          action_spec: The spec of the actions.
          seed: See `BanditTFEnvironment`.

        Raises:
          ValueError: A shape or dtype is another.
        """
        shapes = [
            distribution.batch_shape
            for distribution in (observation_distribution, reward_distribution)
        ]
        if shapes[0].rank != 1 or shapes[0] != shapes[1]:
            raise ValueError(
                f"observation_distribution, reward_distribution: got batch shapes "
                f"{shapes[0]} and {shapes[1]}, expected [B] of both: they must have the"
                " same batch shape."
            )
        kind = reward_distribution.event_shape, reward_distribution.dtype
        if kind[0].rank != 0 or kind[1] != tf.float32:
            raise ValueError(
                f"reward_distribution: got event_shape {kind[0]} and dtype {kind[1]}, "
                "expected () and float32; change it."
            )
        spec = tf.TensorSpec(
            observation_distribution.event_shape, observation_distribution.dtype
        )
        self._distributions = observation_distribution, reward_distribution
        super().__init__(ts.time_step_spec(spec), action_spec, shapes[0][0], seed=seed)

    def _observe(self) -> Any:
        return sampling.sample(self._distributions[0], self._next_seed())

    def _apply_action(self, action: Any) -> Any:
        del action
        return sampling.sample(self._distributions[1], self._next_seed())
