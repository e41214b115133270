"""Draws arms by the softmax of weights, whatever the observation is."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import bandit_policy
from tfrl.policies.utils import BanditPolicyType
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts


class CategoricalPolicy(bandit_policy.BanditPolicy):
    """Draws arms by `softmax(inverse_temperature weights)`."""

    _policy_type = BanditPolicyType.UNKNOWN
    _draws = True

    def __init__(
        self,
        weights: Any,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        inverse_temperature: Any = 1.0,
        emit_log_probability: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Creates the policy.

        Args:
          weights: `[A]`, a tensor or a variable.
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          inverse_temperature: The factor of the weights, a number or a variable.
          emit_log_probability: See `BanditPolicy`.
          name: The module's name.
          **kwargs: Further arguments of `BanditPolicy`.
        """
        self._weights = weights
        self._inverse_temperature = inverse_temperature
        super().__init__(
            time_step_spec,
            action_spec,
            emit_log_probability=emit_log_probability,
            name=name,
            **kwargs,
        )

    def _predict(self, observation: Any) -> bandit_policy.Prediction:
        weights = tf.convert_to_tensor(self._weights)
        return bandit_policy.Prediction(bandit_policy.in_each_row(weights, observation))

    def _log_probabilities(self, predicted: bandit_policy.Prediction) -> tf.Tensor:
        factor = tf.cast(self._inverse_temperature, predicted.mean.dtype)
        return bandit_policy.log_softmax(factor * predicted.mean, predicted.allowed)
