"""Policies of linear models: upper confidence bounds, and Thompson's samples."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import bandit_policy, largest, linear_models
from tfrl.policies.utils import BanditPolicyType, InfoFields
from tfrl.specs import tensor_spec
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
        cov_matrix: Any,
        data_vector: Any,
        num_samples: Any,
        time_step_spec: ts.TimeStep,
        exploration_strategy: ExplorationStrategy = ExplorationStrategy.optimistic,
        alpha: Any = 1.0,
        eig_vals: Sequence[Any] = (),
        eig_matrix: Sequence[Any] = (),
        tikhonov_weight: float = 1.0,
        add_bias: bool = False,
        emit_policy_info: Sequence[str] = (),
        emit_log_probability: bool = False,
        accepts_per_arm_features: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        theta: Any = None,
        name: str | None = None,
        *,
        inverse: Any = None,
        dtype: tf.DType | None = None,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          action_spec: See `BanditPolicy`.
          cov_matrix: The matrix A of each model: a list of `[d, d]`, or `[M, d, d]`.
          data_vector: The vector b of each model: a list of `[d]`, or `[M, d]`.
          num_samples: The numbers of rows, `M` of them; the choice does not depend on
            them.
          time_step_spec: See `BanditPolicy`.
          exploration_strategy: How the policy explores.
          alpha: The factor of the standard deviations: a number or a variable.
          eig_vals: Has no effect, since it follows from `cov_matrix`.
          eig_matrix: Has no effect, since it follows from `cov_matrix`.
          tikhonov_weight: The ridge; see `LinearBanditAgent`.
          add_bias: Whether a 1 follows the global features.
          emit_policy_info: See `BanditPolicy`. The field of the scores is
            `predicted_rewards_optimistic` or `predicted_rewards_sampled`.
          emit_log_probability: See `BanditPolicy`. The optimistic strategy has the
            probability 1 for its arm. The probabilities of Thompson's draws are
            integrals over a normal density by the trapezoidal rule, with errors below
            0.01, and below 1e-4 unless deviations of arms differ by a factor of 20.
          accepts_per_arm_features: See `BanditPolicy`.
          observation_and_action_constraint_splitter: See `TFPolicy`.
          theta: The models' parameters `[M, d]`; None computes them for each action.
          name: The module's name.
          inverse: The inverse P of each model, `[M, d, d]`; None computes it for each
            action.
          dtype: See `BanditPolicy`; None for that of `data_vector`.
          seed: See `TFPolicy`.

        Raises:
          ValueError: `alpha` is negative, or the number or the size of the models does
            not fit the specs.
        """
        del eig_vals, eig_matrix
        number_checks.check_number("alpha", alpha, 0, remedy="0 does not explore")
        splitter = observation_and_action_constraint_splitter
        shape = linear_models.shape_of(
            time_step_spec, action_spec, splitter, accepts_per_arm_features, add_bias
        )
        self._models = linear_models.LinearModels(
            shape,
            cov_matrix,
            data_vector,
            num_samples,
            theta,
            inverse,
            tikhonov_weight,
        )
        self._strategy = exploration_strategy
        self._alpha = alpha
        self._add_bias = add_bias
        self._scores_field = InfoFields.PREDICTED_REWARDS_OPTIMISTIC
        if exploration_strategy != ExplorationStrategy.optimistic:
            self._scores_field = InfoFields.PREDICTED_REWARDS_SAMPLED
            self._policy_type = BanditPolicyType.UNKNOWN
            self._adds_noise = True
        super().__init__(
            time_step_spec,
            action_spec,
            emit_policy_info=emit_policy_info,
            emit_log_probability=emit_log_probability,
            accepts_per_arm_features=accepts_per_arm_features,
            observation_and_action_constraint_splitter=splitter,
            dtype=data_vector[0].dtype if dtype is None else dtype,
            name=name,
            seed=seed,
        )

    def _predict(self, observation: Any) -> bandit_policy.Prediction:
        x = linear_models.features(observation, self._add_bias)
        return bandit_policy.Prediction(*self._models.predict(x, self._alpha))

    def _scores(
        self, predicted: bandit_policy.Prediction, seed: tf.Tensor
    ) -> tf.Tensor:
        if self._strategy == ExplorationStrategy.optimistic:
            return predicted.upper_bound()
        noise = seeds.normal(seed, tf.shape(predicted.mean))
        return predicted.mean + predicted.deviation * tf.cast(noise, tf.float64)

    def _log_probabilities(self, predicted: bandit_policy.Prediction) -> tf.Tensor:
        if self._strategy == ExplorationStrategy.optimistic:
            return super()._log_probabilities(predicted)
        return largest.of_normal(predicted.mean, predicted.deviation, predicted.allowed)


class OneStrategyPolicy(LinearBanditPolicy):
    """Base of linear policies that explore in one way, without the argument for it."""

    _own_strategy = ExplorationStrategy.optimistic

    def __init__(
        self,
        action_spec: tensor_spec.BoundedTensorSpec,
        cov_matrix: Any,
        data_vector: Any,
        num_samples: Any,
        time_step_spec: ts.TimeStep,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Creates the policy; see `LinearBanditPolicy`."""
        super().__init__(
            action_spec,
            cov_matrix,
            data_vector,
            num_samples,
            time_step_spec,
            self._own_strategy,
            *args,
            **kwargs,
        )
