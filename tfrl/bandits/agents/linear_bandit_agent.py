"""Linear bandits: one linear model for each arm, or one for the features of arms.

The state is exact, so each row must be seen once: train on fresh rows, as an
`OnPolicyLoop` does, or clear a buffer after `gather_all`.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import tensorflow as tf

from tfrl.bandits.agents import bandit_agent, utils
from tfrl.bandits.policies import linear_bandit_policy, linear_models
from tfrl.bandits.policies.linear_models import (
    LinearBanditVariableCollection as LinearBanditVariableCollection,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks


class ExplorationPolicy(enum.Enum):
    """The policy of a linear bandit."""

    linear_ucb_policy = 1
    linear_thompson_sampling_policy = 2


def update_a_and_b_with_forgetting(
    a_prev: tf.Tensor, b_prev: tf.Tensor, r: tf.Tensor, x: tf.Tensor, gamma: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the sums `A` and `b` of a model after one batch of its rows.

    The agents' own sums are kept by `LinearBanditVariableCollection.add`.

    Args:
      a_prev: A before, `[d, d]`.
      b_prev: b before, `[d]`.
      r: The rewards, `[n]`.
      x: The features, `[n, d]`.
      gamma: How much of the sums the whole batch keeps.
    """
    a_new = gamma * a_prev + tf.matmul(x, x, transpose_a=True)
    return a_new, gamma * b_prev + utils.sum_reward_weighted_observations(r, x)


class LinearModelsAgent(bandit_agent.SumsAgent):
    """Base of agents with linear models of arms, which a subclass makes."""

    _variable_collection: LinearBanditVariableCollection
    _alpha: Any
    # The ridge, and how much of its model's sums each row keeps.
    _ridge: float
    _forgetting: float

    @property
    def alpha(self) -> Any:
        """The factor of the standard deviations."""
        return self._alpha

    def update_alpha(self, alpha: Any) -> None:
        """Sets the factor of the standard deviations.

        Raises:
          TypeError: The agent has a fixed one.
        """
        if not isinstance(self._alpha, tf.Variable):
            raise TypeError(
                f"alpha: got the fixed number {self._alpha}, expected a tf.Variable; "
                "give one to the agent."
            )
        self._alpha.assign(alpha)

    @property
    def cov_matrix(self) -> list[tf.Tensor]:
        """The matrix A of each model, `[d, d]`."""
        return self._variable_collection.cov_matrix_list

    @property
    def data_vector(self) -> list[tf.Tensor]:
        """The vector b of each model, `[d]`."""
        return self._variable_collection.data_vector_list

    @property
    def eig_vals(self) -> list[tf.Tensor]:
        """The eigenvalues of each A, `[d]`."""
        return self._variable_collection.eig_vals_list

    @property
    def eig_matrix(self) -> list[tf.Tensor]:
        """The eigenvectors of each A, `[d, d]`."""
        return self._variable_collection.eig_matrix_list

    @property
    def num_samples(self) -> list[tf.Tensor]:
        """The sums of the weights of the models' rows."""
        return self._variable_collection.num_samples_list

    @abc.abstractmethod
    def _features(self, rows: bandit_agent.Rows) -> tf.Tensor:
        """Returns the features of the chosen arms, float64 `[n, d]`."""

    def _predicted(self, rows: bandit_agent.Rows, x: tf.Tensor) -> tf.Tensor:
        """Returns the rewards that the models predict by features, float64 `[n]`."""
        theta = tf.gather(self._variable_collection.theta.read_value(), rows.action)
        return tf.reduce_sum(theta * x, axis=1)

    def _add(self, rows: bandit_agent.Rows) -> None:
        self._add_features(rows, self._features(rows))

    def _add_features(self, rows: bandit_agent.Rows, x: tf.Tensor) -> None:
        self._variable_collection.add(
            x,
            tf.cast(rows.reward, tf.float64),
            tf.cast(rows.weights, tf.float64),
            rows.action,
            self._ridge,
            self._forgetting,
        )


class LinearBanditSettings(TypedDict, total=False):
    """The optional arguments of `LinearBanditAgent` as keywords."""

    variable_collection: LinearBanditVariableCollection | None
    alpha: Any
    gamma: float
    use_eigendecomp: bool
    tikhonov_weight: float
    add_bias: bool
    emit_policy_info: Sequence[str]
    emit_log_probability: bool
    observation_and_action_constraint_splitter: types.Splitter | None
    accepts_per_arm_features: bool
    debug_summaries: bool
    summarize_grads_and_vars: bool
    enable_summaries: bool
    dtype: tf.DType
    name: str | None
    train_step_counter: tf.Variable | None
    seed: int | None


class LinearBanditAgent(LinearModelsAgent):
    """Adds up the rows of each arm, and predicts rewards by ridge regression.

    A row with the features x, the reward r and the weight w changes the sums of its
    model: `A += w x x'`, `b += w r x`. The parameters are `theta = (A + tikhonov_weight
    I)^-1 b`. All sums are float64, so they stay exact for features of very different
    sizes. Updates of rank one keep the inverses; every thousand rows, and after a row
    that was very uncertain, Cholesky factors of the sums replace them.

    With `tikhonov_weight` 0 the models of arms without rows are still uncertain, so
    all arms are tried.
    """

    def __init__(
        self,
        exploration_policy: ExplorationPolicy,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        variable_collection: LinearBanditVariableCollection | None = None,
        alpha: Any = 1.0,
        gamma: float = 1.0,
        use_eigendecomp: bool = False,
        tikhonov_weight: float = 1.0,
        add_bias: bool = False,
        emit_policy_info: Sequence[str] = (),
        emit_log_probability: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        accepts_per_arm_features: bool = False,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        enable_summaries: bool = True,
        dtype: tf.DType = tf.float32,
        name: str | None = None,
        *,
        train_step_counter: tf.Variable | None = None,
        seed: int | None = None,
    ) -> None:
        """Makes the models and the policy.

        Args:
          exploration_policy: How the policy explores.
          time_step_spec: A `TimeStep` of specs. The observation is a tensor `[d]`, or a
            dictionary; see `bandit_spec_utils`.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          variable_collection: The state of the models; None makes it.
          alpha: The factor of the standard deviations in exploration: a number, or a
            variable.
          gamma: How much of its model's sums each row keeps, from 0 to 1; below 1 the
            agent forgets. In TF-Agents all arms forget at each call of `train`.
          use_eigendecomp: Has no effect; Cholesky factors solve exactly.
          tikhonov_weight: The weight of the squared parameters in the least squares.
          add_bias: Whether a 1 follows the global features.
          emit_policy_info: The fields of the policy's info to fill in.
          emit_log_probability: Whether the info has the logarithm of the action's
            probability.
          observation_and_action_constraint_splitter: Splits an observation into the
            context and a mask of the allowed arms, also with features of arms.
          accepts_per_arm_features: Whether arms have features; one model then serves
            all arms.
          dtype: The dtype of `theta` and of the predictions in the info.

        Raises:
          ValueError: A number is out of its range, or a spec is of another kind.
          TypeError: `variable_collection` is of another kind.
        """
        del use_eigendecomp
        number_checks.check_number("gamma", gamma, 0, 1, remedy="1 is usual")
        if dtype not in (tf.float32, tf.float64):
            raise ValueError(
                f"dtype: got {dtype}, expected tf.float32 or tf.float64; leave it out."
            )
        splitter = observation_and_action_constraint_splitter
        shape = linear_models.shape_of(
            time_step_spec, action_spec, splitter, accepts_per_arm_features, add_bias
        )
        variable_collection = bandit_agent.as_collection(
            variable_collection, LinearBanditVariableCollection, *shape, dtype=dtype
        )
        variable_collection.solve(tikhonov_weight)
        is_optimistic = exploration_policy == ExplorationPolicy.linear_ucb_policy
        strategies = linear_bandit_policy.ExplorationStrategy
        policy = linear_bandit_policy.LinearBanditPolicy(
            action_spec,
            time_step_spec=time_step_spec,
            exploration_strategy=(
                strategies.optimistic if is_optimistic else strategies.sampling
            ),
            alpha=alpha,
            tikhonov_weight=tikhonov_weight,
            add_bias=add_bias,
            emit_policy_info=emit_policy_info,
            emit_log_probability=emit_log_probability,
            accepts_per_arm_features=accepts_per_arm_features,
            observation_and_action_constraint_splitter=splitter,
            dtype=dtype,
            seed=seed,
            **variable_collection.policy_arguments(),
        )
        super().__init__(
            policy,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            enable_summaries=enable_summaries,
            train_step_counter=train_step_counter,
            name=name,
        )
        self._alpha = alpha
        self._variable_collection = variable_collection
        self._forgetting = gamma
        self._ridge = tikhonov_weight
        self._add_bias = add_bias
        self._dtype = dtype

    @property
    def theta(self) -> tf.Tensor:
        """The parameters of the models, `[M, d]`."""
        return tf.cast(self._variable_collection.theta, self._dtype)

    def _variables(self) -> list[tf.Variable]:
        return list(self._variable_collection.variables)

    def _loss_of(self, rows: bandit_agent.Rows, training: bool) -> tf.Tensor:
        """Returns the mean squared error of the predicted rewards, weighted."""
        del training
        predicted = self._predicted(rows, self._features(rows))
        errors = predicted - tf.cast(rows.reward, tf.float64)
        squares = tf.square(tf.cast(errors, tf.float32))
        return bandit_agent.mean_over_rows(squares, rows)

    def _features(self, rows: bandit_agent.Rows) -> tf.Tensor:
        x = linear_models.features(rows.observation, self._add_bias)
        return x[:, 0] if self._accepts_per_arm_features else x


class OnePolicyAgent(LinearBanditAgent):
    """Base of linear agents that explore in one way, without the argument for it."""

    _own_policy = ExplorationPolicy.linear_ucb_policy

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        *args: Any,
        **settings: Unpack[LinearBanditSettings],
    ) -> None:
        """Makes the agent; see `LinearBanditAgent` for the other arguments."""
        super().__init__(
            self._own_policy, time_step_spec, action_spec, *args, **settings
        )
