"""Policies that choose the largest predicted reward, always or mostly."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import bandit_policy, reward_prediction_base_policy
from tfrl.policies import utils as policy_utils
from tfrl.policies.utils import BanditPolicyType
from tfrl.utils.random_numbers import seeds


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
        own = [self._epsilon] if isinstance(self._epsilon, tf.Variable) else []
        return [*super()._variables(), *own]

    def _choose(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor, seed: tf.Tensor
    ) -> bandit_policy.Choice:
        choice = super()._choose(predicted, allowed, seed)
        for_coin, for_arm = seeds.split_seed(seed, 2)
        coin = seeds.uniform(for_coin, tf.shape(choice.action))
        is_uniform = (coin < number(self._epsilon)) & (choice.action >= 0)
        arm = policy_utils.random_valid_index(allowed, for_arm)
        return bandit_policy.Choice(
            tf.where(is_uniform, arm, choice.action),
            tf.where(is_uniform, BanditPolicyType.UNIFORM, choice.policy_type),
        )

    def _log_probabilities(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor
    ) -> tf.Tensor:
        epsilon = number(self._epsilon)
        one = tf.cast(allowed, tf.float32)
        share = tf.math.divide_no_nan(one, tf.reduce_sum(one, axis=1, keepdims=True))
        best = tf.exp(super()._log_probabilities(predicted, allowed))
        probability = epsilon * share + (1 - epsilon) * best
        return bandit_policy.log_of(probability)


def number(value: Any) -> tf.Tensor:
    """Returns the float32 number of a number, a variable, or a function."""
    return tf.cast(value() if callable(value) else value, tf.float32)
