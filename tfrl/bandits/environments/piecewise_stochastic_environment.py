"""Linear rewards whose parameters are drawn again after intervals."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.environments import non_stationary_stochastic_environment as bandit


class PiecewiseStationaryDynamics(bandit.LinearDynamics):
    """Draws the parameters and the additive rewards again at the end of each interval.

    An interval counts the rounds of all members.
    """

    def __init__(
        self,
        observation_distribution: Any,
        interval_distribution: Any,
        observation_to_reward_distribution: Any,
        additive_reward_distribution: Any,
        *,
        seed: int | None = None,
    ) -> None:
        """Draws the first parameters and the first interval.

        Args:
          observation_distribution: See `LinearDynamics`.
          interval_distribution: A TFP distribution of one number, which is cast to
            int64.
          observation_to_reward_distribution: See `LinearDynamics`.
          additive_reward_distribution: See `LinearDynamics`.
          seed: See `LinearDynamics`.
        """
        super().__init__(
            observation_distribution,
            observation_to_reward_distribution,
            additive_reward_distribution,
            seed=seed,
        )
        self._interval_distribution = interval_distribution
        # The time at which the interval ends.
        self._current_interval = tf.Variable(self._interval(), trainable=False)

    def _advance(self, env_time: tf.Tensor) -> None:
        end = self._current_interval.read_value()
        is_over = env_time >= end
        for variable, new in (
            (self._current_interval, end + self._interval()),
            (
                self._current_observation_to_reward,
                self._draw(self._matrix_distribution),
            ),
            (self._current_additive_reward, self._draw(self._additive_distribution)),
        ):
            variable.assign(tf.where(is_over, new, variable.read_value()))

    def _interval(self) -> tf.Tensor:
        return tf.cast(self._draw(self._interval_distribution), tf.int64)


class PiecewiseStochasticEnvironment(bandit.NonStationaryStochasticEnvironment):
    """The bandit of `PiecewiseStationaryDynamics`."""

    def __init__(
        self,
        observation_distribution: Any,
        interval_distribution: Any,
        observation_to_reward_distribution: Any,
        additive_reward_distribution: Any,
        *,
        seed: int | None = None,
    ) -> None:
        """Makes the dynamics; see `PiecewiseStationaryDynamics`."""
        super().__init__(
            PiecewiseStationaryDynamics(
                observation_distribution,
                interval_distribution,
                observation_to_reward_distribution,
                additive_reward_distribution,
                seed=seed,
            )
        )
