"""Policies of linear models: upper confidence bounds, and Thompson's samples."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import bandit_policy, largest, linear_models
from tfrl.policies.utils import BanditPolicyType, InfoFields
from tfrl.specs import bandit_spec_utils, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds


class ExplorationStrategy(enum.Enum):
    """How a linear policy explores."""

    optimistic = 1
    sampling = 2


class LinearBanditPolicy(bandit_policy.BanditPolicy):
    """Chooses by linear models' predictions and their uncertainty.

    With parameters theta and the inverse P of a model, an arm with the features x has
    the mean `x' theta` and the standard deviation `alpha sqrt(x' P x)`. The optimistic
    strategy chooses the largest sum of both (Li et al., "A contextual-bandit approach
    to personalized news article recommendation", 2010, arXiv:1003.0146, algorithm 1).
    The other draws a normal number for each arm (Agrawal and Goyal, "Thompson sampling
    for contextual bandits with linear payoffs", 2013, arXiv:1209.3352, with independent
    draws for the arms).
    """

    def __init__(
        self,
        action_spec: tensor_spec.BoundedTensorSpec,
        variable_collection: linear_models.LinearBanditVariableCollection,
        time_step_spec: ts.TimeStep,
        exploration_strategy: ExplorationStrategy = ExplorationStrategy.optimistic,
        alpha: Any = 1.0,
        add_bias: bool = False,
        emit_policy_info: Sequence[str] = (),
        emit_log_probability: bool = False,
        accepts_per_arm_features: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        dtype: tf.DType = tf.float32,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          action_spec: See `BanditPolicy`.
          variable_collection: The state of the models; the agent changes it.
          time_step_spec: See `BanditPolicy`.
          exploration_strategy: How the policy explores.
          alpha: The factor of the standard deviations: a number or a variable.
          add_bias: Whether a 1 follows the global features.
          emit_policy_info: See `BanditPolicy`. The field of the scores is
            `predicted_rewards_optimistic` or `predicted_rewards_sampled`.
          emit_log_probability: See `BanditPolicy`. The optimistic strategy has the
            probability 1 for its arm. The probabilities of Thompson's draws are
            integrals over a normal density by the trapezoidal rule, with errors below
            0.01, and below 1e-4 unless deviations of arms differ by a factor of 20.
          accepts_per_arm_features: See `BanditPolicy`.
          observation_and_action_constraint_splitter: See `TFPolicy`.
          dtype: See `BanditPolicy`.
          name: The module's name.
          seed: See `TFPolicy`.
        """
        if not isinstance(alpha, tf.Variable):
            number_checks.check_number("alpha", alpha, 0, remedy="0 does not explore")
        self._variable_collection = variable_collection
        self._strategy = exploration_strategy
        self._alpha = alpha
        self._add_bias = add_bias
        is_optimistic = exploration_strategy == ExplorationStrategy.optimistic
        super().__init__(
            time_step_spec,
            action_spec,
            emit_policy_info=emit_policy_info,
            emit_log_probability=emit_log_probability,
            accepts_per_arm_features=accepts_per_arm_features,
            observation_and_action_constraint_splitter=(
                observation_and_action_constraint_splitter
            ),
            scores_field=InfoFields.PREDICTED_REWARDS_OPTIMISTIC
            if is_optimistic
            else InfoFields.PREDICTED_REWARDS_SAMPLED,
            dtype=dtype,
            name=name,
            seed=seed,
        )

    def _variables(self) -> Sequence[Any]:
        models = self._variable_collection
        alpha = [self._alpha] if isinstance(self._alpha, tf.Variable) else []
        return [models.theta, models.inverse, *alpha]

    def _predict(self, observation: Any) -> bandit_policy.Prediction:
        models, arms = self._variable_collection, None
        if self._accepts_per_arm_features:
            arms = observation[bandit_spec_utils.PER_ARM_FEATURE_KEY]
            observation = observation[bandit_spec_utils.GLOBAL_FEATURE_KEY]
        x = linear_models.features(observation, arms, self._add_bias)
        mean, deviation = linear_models.predictions(x, models)
        return bandit_policy.Prediction(
            mean, tf.cast(self._alpha, tf.float64) * deviation
        )

    def _choose(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor, seed: tf.Tensor
    ) -> bandit_policy.Choice:
        mean, deviation, _ = predicted
        if self._strategy == ExplorationStrategy.optimistic:
            scores = mean + deviation
            policy_type = BanditPolicyType.GREEDY
        else:
            noise = seeds.normal(seed, tf.shape(mean))
            scores = mean + deviation * tf.cast(noise, tf.float64)
            policy_type = BanditPolicyType.UNKNOWN
        action = bandit_policy.greedy(scores, allowed)
        return bandit_policy.Choice(
            action, bandit_policy.of_type(action, policy_type), scores
        )

    def _log_probabilities(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor
    ) -> tf.Tensor:
        mean, deviation, _ = predicted
        if self._strategy == ExplorationStrategy.optimistic:
            return bandit_policy.greedy_log_probabilities(mean + deviation, allowed)
        return largest.of_normal(mean, deviation, allowed)
