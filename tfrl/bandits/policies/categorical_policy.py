"""Draws arms by the softmax of weights, whatever the observation is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import bandit_policy
from tfrl.policies.utils import BanditPolicyType
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts


class CategoricalPolicy(bandit_policy.BanditPolicy):
    """Draws arms by `softmax(inverse_temperature weights)`."""

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

    def _variables(self) -> Sequence[Any]:
        return bandit_policy.variables_in(self._weights, self._inverse_temperature)

    def _predict(self, observation: Any) -> bandit_policy.Prediction:
        first = tf.nest.flatten(observation)[0]
        weights = tf.convert_to_tensor(self._weights)
        shape = tf.concat([tf.shape(first)[:1], weights.shape], axis=0)
        mean = tf.ensure_shape(
            tf.broadcast_to(weights, shape), [first.shape[0], self._num_actions]
        )
        return bandit_policy.Prediction(mean)

    def _choose(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor, seed: tf.Tensor
    ) -> bandit_policy.Choice:
        logs = self._log_probabilities(predicted, allowed)
        action = bandit_policy.drawn(logs, allowed, seed)
        kind = bandit_policy.of_type(action, BanditPolicyType.UNKNOWN)
        return bandit_policy.Choice(action, kind)

    def _log_probabilities(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor
    ) -> tf.Tensor:
        factor = tf.cast(self._inverse_temperature, predicted.mean.dtype)
        return bandit_policy.log_softmax(factor * predicted.mean, allowed)
