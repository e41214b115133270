"""Policies that choose the largest predicted reward: always, mostly, or of draws."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.networks import network_outputs
from tfrl.bandits.policies import bandit_policy, reward_prediction_base_policy
from tfrl.policies.utils import BanditPolicyType, InfoFields
from tfrl.utils.random_numbers import seeds


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


class BootstrappedPolicy(bandit_policy.BanditPolicy):
    """Draws a network for each row, and takes the largest reward that it predicts.

    The probability of an arm is the share of the networks that it is the best of.
    """

    _policy_type = BanditPolicyType.UNKNOWN
    _scores_field = InfoFields.PREDICTED_REWARDS_SAMPLED

    def __init__(
        self, time_step_spec: Any, action_spec: Any, ensemble: Any, **kwargs: Any
    ) -> None:
        """Creates the policy; see `BanditPolicy` for other arguments.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          ensemble: A network with output `[B, K, A]`, an `EnsembleRewardNetwork`.
          **kwargs: Further arguments of `BanditPolicy`.
        """
        self._ensemble = ensemble
        super().__init__(time_step_spec, action_spec, **kwargs)

    def _predict(self, observation: Any) -> bandit_policy.Prediction:
        parts, _ = self._ensemble(observation)
        return bandit_policy.Prediction(tf.reduce_mean(parts, axis=1), parts=parts)

    def _scores(
        self, predicted: bandit_policy.Prediction, seed: tf.Tensor
    ) -> tf.Tensor:
        parts = predicted.parts
        head = seeds.uniform(seed, tf.shape(parts)[:1], 0, parts.shape[1], tf.int32)
        return tf.gather(parts, head, batch_dims=1)

    def _log_probabilities(self, predicted: bandit_policy.Prediction) -> tf.Tensor:
        allowed = predicted.allowed
        scores = tf.where(allowed[:, tf.newaxis], predicted.parts, tf.float32.min)
        best = tf.one_hot(tf.argmax(scores, axis=2), allowed.shape[1])
        share = tf.reduce_mean(best, axis=1)
        return bandit_policy.log_of(share * tf.cast(allowed, tf.float32))


class DropoutPolicy(GreedyRewardPredictionPolicy):
    """Chooses the largest reward of a `DropoutRewardNetwork` that the seed draws.

    `distribution` is that of the network without dropout, since there is no formula for
    the probabilities of the draws.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Creates the policy; see `RewardPredictionBasePolicy` for the arguments.

        Raises:
          ValueError: `emit_log_probability` is True.
        """
        super().__init__(**kwargs)
        if self._emit_log_probability:
            raise ValueError(
                "emit_log_probability: got True, expected False; the probabilities of "
                "dropout's draws have no formula; use BootstrappedAgent."
            )

    def _predict_by(
        self, observation: Any, seed: tf.Tensor
    ) -> bandit_policy.Prediction:
        output = self._reward_network.draw(observation, seed)
        return bandit_policy.Prediction(network_outputs.mean_of(output))
