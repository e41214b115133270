"""Policies that choose the largest predicted reward, always or mostly."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import bandit_policy, reward_prediction_base_policy
from tfrl.policies.utils import BanditPolicyType


class GreedyRewardPredictionPolicy(
    reward_prediction_base_policy.RewardPredictionBasePolicy
):
    """Chooses the allowed arm with the largest predicted reward."""

    def _choose(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor, seed: tf.Tensor
    ) -> bandit_policy.Choice:
        del seed
        action = bandit_policy.greedy(predicted.mean, allowed)
        kind = bandit_policy.of_type(action, BanditPolicyType.GREEDY)
        return bandit_policy.Choice(action, kind)

    def _log_probabilities(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor
    ) -> tf.Tensor:
        return bandit_policy.greedy_log_probabilities(predicted.mean, allowed)


class EpsilonGreedyRewardPredictionPolicy(GreedyRewardPredictionPolicy):
    """Draws an allowed arm uniformly with probability epsilon, and else is greedy."""

    def __init__(self, *args: Any, epsilon: Any, **kwargs: Any) -> None:
        """Creates the policy; see `RewardPredictionBasePolicy` for other arguments.

        Args:
          *args: Arguments of the base class.
          epsilon: The probability of a uniform arm: a number, a variable, or a function
            that returns one.
          **kwargs: Arguments of the base class.
        """
        super().__init__(*args, **kwargs)
        self._epsilon = epsilon

    def _variables(self) -> Any:
        return [*super()._variables(), *bandit_policy.variables_in(self._epsilon)]

    def _choose(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor, seed: tf.Tensor
    ) -> bandit_policy.Choice:
        choice = super()._choose(predicted, allowed, seed)
        epsilon = number(self._epsilon)
        return bandit_policy.sometimes_uniform(choice, allowed, epsilon, seed)

    def _log_probabilities(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor
    ) -> tf.Tensor:
        best = super()._log_probabilities(predicted, allowed)
        epsilon = number(self._epsilon)
        return bandit_policy.sometimes_uniform_log_probabilities(best, allowed, epsilon)


def number(value: Any) -> tf.Tensor:
    """Returns the float32 number of a number, a variable, or a function."""
    return tf.cast(value() if callable(value) else value, tf.float32)
