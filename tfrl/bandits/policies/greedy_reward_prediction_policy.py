"""Policies that choose the largest predicted reward, always or mostly."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import reward_prediction_base_policy
from tfrl.policies.utils import BanditPolicyType


class GreedyRewardPredictionPolicy(
    reward_prediction_base_policy.RewardPredictionBasePolicy
):
    """Chooses the allowed arm with the largest predicted reward."""

    _policy_type = BanditPolicyType.GREEDY
    _draws = False


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

    def _uniform_share(self) -> tf.Tensor:
        return reward_prediction_base_policy.number(self._epsilon)
