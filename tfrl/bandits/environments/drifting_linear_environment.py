"""Linear rewards whose parameters turn a little in each round."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.environments import non_stationary_stochastic_environment as bandit
from tfrl.utils.random_numbers import seeds


class DriftingLinearDynamics(bandit.LinearDynamics):
    """Turns the parameters in the plane of two neighbouring features, in each round.

    Turning keeps their norm. The additive rewards are drawn again in each round, so the
    best arm is the one that is best with their means.
    """

    def __init__(
        self,
        observation_distribution: Any,
        observation_to_reward_distribution: Any,
        drift_distribution: Any,
        additive_reward_distribution: Any,
        *,
        seed: int | None = None,
    ) -> None:
        """Draws the first parameters.

        Args:
          observation_distribution: See `LinearDynamics`.
          observation_to_reward_distribution: See `LinearDynamics`.
          drift_distribution: A TFP distribution of one float32 number, the angle.
          additive_reward_distribution: See `LinearDynamics`.
          seed: See `LinearDynamics`.
        """
        super().__init__(
            observation_distribution,
            observation_to_reward_distribution,
            additive_reward_distribution,
            seed=seed,
        )
        self._drift_distribution = drift_distribution

    def _advance(self, env_time: tf.Tensor) -> None:
        del env_time
        matrix = self._current_observation_to_reward.read_value()
        size = matrix.shape[0]
        angle = self._draw(self._drift_distribution)
        i = seeds.uniform(self._seeds.next(), [], maxval=size, dtype=tf.int32)
        j = (i + 1) % size
        cos, sin = tf.cos(angle), tf.sin(angle)
        turned = [cos * matrix[i] - sin * matrix[j], sin * matrix[i] + cos * matrix[j]]
        places = tf.stack([i, j])[:, tf.newaxis]
        matrix = tf.tensor_scatter_nd_update(matrix, places, tf.stack(turned))
        self._current_observation_to_reward.assign(matrix)
        self._current_additive_reward.assign(self._draw(self._additive_distribution))

    def _expected(self, observation: tf.Tensor) -> tf.Tensor:
        return self._rewards(observation, self._additive_distribution.mean())


class DriftingLinearEnvironment(bandit.NonStationaryStochasticEnvironment):
    """The bandit of `DriftingLinearDynamics`."""

    def __init__(
        self,
        observation_distribution: Any,
        observation_to_reward_distribution: Any,
        drift_distribution: Any,
        additive_reward_distribution: Any,
        *,
        seed: int | None = None,
    ) -> None:
        """Makes the dynamics; see `DriftingLinearDynamics`."""
        super().__init__(
            DriftingLinearDynamics(
                observation_distribution,
                observation_to_reward_distribution,
                drift_distribution,
                additive_reward_distribution,
                seed=seed,
            )
        )
