"""Policies that prefer larger predicted rewards: Boltzmann's, and Gumbel's noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import bandit_policy, largest, reward_prediction_base_policy
from tfrl.policies.utils import BanditPolicyType
from tfrl.utils.random_numbers import seeds

# What a temperature of 0 counts as.
_LEAST_TEMPERATURE = 1e-6
# Of an arm without rows, which so has a noise that is as good as unbounded.
_FEWEST_SAMPLES = 1e-12


class BoltzmannRewardPredictionPolicy(
    reward_prediction_base_policy.RewardPredictionBasePolicy
):
    """Draws arms by the softmax of their predicted rewards divided by a temperature.

    With `boltzmann_gumbel_exploration_constant` C, it instead chooses the largest `f +
    C / sqrt(n) G` with a Gumbel number G for each arm, whose model has seen n rows
    (Cesa-Bianchi et al., "Boltzmann exploration done right", 2017, arXiv:1705.10257).
    An arm without rows has a noise of 10^6 C.
    """

    _policy_type = BanditPolicyType.BOLTZMANN

    def __init__(
        self,
        time_step_spec: Any,
        action_spec: Any,
        reward_network: Any,
        temperature: Any = 1.0,
        boltzmann_gumbel_exploration_constant: float | None = None,
        *args: Any,
        num_samples_list: Sequence[tf.Variable] = (),
        **kwargs: Any,
    ) -> None:
        """Creates the policy; see `RewardPredictionBasePolicy` for other arguments.

        Args:
          time_step_spec: See the base class.
          action_spec: See the base class.
          reward_network: See the base class.
          temperature: The temperature: a number, a variable, or a function that returns
            one.
          boltzmann_gumbel_exploration_constant: C; None for the softmax.
          *args: Further arguments of the base class.
          num_samples_list: The variables with the number of rows of each arm, in all
            `[A]`, for Gumbel's noise.
          **kwargs: Arguments of the base class.

        Raises:
          ValueError: There is C with features of arms, or without numbers of rows.
        """
        super().__init__(time_step_spec, action_spec, reward_network, *args, **kwargs)
        constant = boltzmann_gumbel_exploration_constant
        if constant is not None and (
            self._accepts_per_arm_features or not num_samples_list
        ):
            raise ValueError(
                f"boltzmann_gumbel_exploration_constant: got {constant} with features "
                "of arms or without num_samples_list, expected None; it needs the "
                "number of rows of each arm."
            )
        self._temperature = temperature
        self._constant = constant
        self._draws = constant is None
        self._adds_noise = constant is not None
        self._num_samples = tuple(num_samples_list)

    def _scores(
        self, predicted: bandit_policy.Prediction, seed: tf.Tensor
    ) -> tf.Tensor:
        unit = tf.maximum(seeds.uniform(seed, tf.shape(predicted.mean)), 2.0**-24)
        return predicted.mean + self._scales() * -tf.math.log(-tf.math.log(unit))

    def _log_probabilities(self, predicted: bandit_policy.Prediction) -> tf.Tensor:
        if self._constant is not None:
            mean = tf.cast(predicted.mean, tf.float64)
            scale = tf.cast(self._scales(), tf.float64) * tf.ones_like(mean)
            return largest.of_gumbel(mean, scale, predicted.allowed)
        temperature = tf.maximum(
            reward_prediction_base_policy.number(self._temperature),
            _LEAST_TEMPERATURE,
        )
        return bandit_policy.log_softmax(
            predicted.mean / temperature, predicted.allowed
        )

    def _scales(self) -> tf.Tensor:
        """Returns the scales of the noise, `[A]`."""
        numbers = reward_prediction_base_policy.numbers_of(self._num_samples)
        return self._constant / tf.sqrt(tf.maximum(numbers, _FEWEST_SAMPLES))
