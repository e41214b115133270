"""A policy that lets one network of an ensemble choose each row's arm."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import bandit_policy
from tfrl.policies.utils import BanditPolicyType, InfoFields
from tfrl.utils.random_numbers import seeds


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

    def _variables(self) -> Any:
        return self._ensemble.variables

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
        return bandit_policy.log_of(tf.reduce_mean(best, axis=1))
