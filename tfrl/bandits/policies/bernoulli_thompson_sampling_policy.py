"""Draws a probability of each arm from its posterior, and takes the largest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import bandit_policy, largest
from tfrl.distributions import sampling
from tfrl.policies import utils as policy_utils
from tfrl.policies.utils import BanditPolicyType, InfoFields
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class BernoulliThompsonSamplingPolicy(bandit_policy.BanditPolicy):
    """Chooses the largest of draws from the arms' beta distributions."""

    _policy_type = BanditPolicyType.UNKNOWN
    _adds_noise = True
    _scores_field = InfoFields.PREDICTED_REWARDS_SAMPLED

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        alpha: Any,
        beta: Any,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        emit_policy_info: Sequence[str] = (),
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          alpha: The first parameters of the beta distributions, `[A]`, or a list of
            one for each arm; variables may change.
          beta: The second parameters.
          observation_and_action_constraint_splitter: See `TFPolicy`.
          emit_policy_info: See `BanditPolicy`.
          name: The module's name.
          **kwargs: Further arguments of `BanditPolicy`. The probabilities are integrals
            with errors below 0.01.

        Raises:
          ValueError: There is another number of parameters than arms.
        """
        self._alpha, self._beta = alpha, beta
        number = policy_utils.get_num_actions_from_tensor_spec(action_spec)
        for argument, parameters in zip(
            ("alpha", "beta"), self._parameters(), strict=True
        ):
            if parameters.shape != [number]:
                raise ValueError(
                    f"{argument}: got shape {parameters.shape}, expected ({number},), "
                    "a parameter for each arm; give as many."
                )
        super().__init__(
            time_step_spec,
            action_spec,
            emit_policy_info=emit_policy_info,
            observation_and_action_constraint_splitter=(
                observation_and_action_constraint_splitter
            ),
            name=name,
            **kwargs,
        )

    def _parameters(self) -> tuple[tf.Tensor, tf.Tensor]:
        alpha, beta = map(tf.convert_to_tensor, (self._alpha, self._beta))
        return tf.cast(alpha, tf.float64), tf.cast(beta, tf.float64)

    def _predict(self, observation: Any) -> bandit_policy.Prediction:
        alpha, beta = self._parameters()
        mean = alpha / (alpha + beta)
        return bandit_policy.Prediction(bandit_policy.in_each_row(mean, observation))

    def _scores(
        self, predicted: bandit_policy.Prediction, seed: tf.Tensor
    ) -> tf.Tensor:
        import tensorflow_probability as tfp

        ones = tf.ones_like(predicted.mean)
        alpha, beta = self._parameters()
        posterior = tfp.distributions.Beta(ones * alpha, ones * beta)
        return sampling.sample(posterior, seed)

    def _log_probabilities(self, predicted: bandit_policy.Prediction) -> tf.Tensor:
        return largest.of_beta(*self._parameters(), predicted.allowed)
