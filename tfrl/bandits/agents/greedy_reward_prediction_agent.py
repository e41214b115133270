"""Agents whose network predicts the reward of each arm, and how they explore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import tensorflow as tf

from tfrl.agents import checks, tf_agent
from tfrl.bandits.agents import bandit_agent
from tfrl.bandits.policies import constraints as constraint_module
from tfrl.bandits.policies import (
    greedy_reward_prediction_policy,
    loss_utils,
    reward_prediction_base_policy,
)
from tfrl.networks import network
from tfrl.policies import utils as policy_utils
from tfrl.specs import bandit_spec_utils, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common
from tfrl.utils.optimization import optimizers


class SettingsBesideCounts(TypedDict, total=False):
    """`RewardSettings` without the counts of samples."""

    observation_and_action_constraint_splitter: types.Splitter | None
    accepts_per_arm_features: bool
    constraints: Sequence[constraint_module.BaseConstraint]
    error_loss_fn: types.LossFn
    gradient_clipping: float | None
    debug_summaries: bool
    summarize_grads_and_vars: bool
    enable_summaries: bool
    emit_policy_info: Sequence[str]
    train_step_counter: tf.Variable | None
    laplacian_matrix: types.TensorLike | None
    laplacian_smoothing_weight: float
    name: str | None
    emit_log_probability: bool
    seed: int | None


class RewardSettings(SettingsBesideCounts, total=False):
    """The optional arguments of `GreedyRewardPredictionAgent` as keywords."""

    num_samples_list: Sequence[tf.Variable]


class GreedyRewardPredictionAgent(bandit_agent.BanditAgent):
    """Learns the rewards of arms by regression, and chooses the largest.

    The loss is the mean of `w L(r, f(x)_a)`; for a network that returns a
    `QBanditNetworkResult` it is the mean of `w heteroscedastic_error(r, f_a, v_a)`. A
    Laplacian matrix adds `laplacian_smoothing_weight w f' L f`, which keeps the
    predictions of related arms near each other.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        reward_network: types.Network | types.Layer,
        optimizer: types.Optimizer | None,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        accepts_per_arm_features: bool = False,
        constraints: Sequence[constraint_module.BaseConstraint] = (),
        error_loss_fn: types.LossFn = common.element_wise_squared_loss,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        enable_summaries: bool = True,
        emit_policy_info: Sequence[str] = (),
        train_step_counter: tf.Variable | None = None,
        num_samples_list: Sequence[tf.Variable] = (),
        laplacian_matrix: types.TensorLike | None = None,
        laplacian_smoothing_weight: float = 0.001,
        name: str | None = None,
        *,
        emit_log_probability: bool = False,
        seed: int | None = None,
    ) -> None:
        """Makes the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          reward_network: A network (or Keras layer) that maps observations to rewards
            `[B, A]`, or to a `QBanditNetworkResult`.
          optimizer: The optimizer; None for an agent that never trains.
          observation_and_action_constraint_splitter: Splits an observation into the
            network's input and a mask of the allowed arms.
          accepts_per_arm_features: Whether arms have features. The network then maps
            features of any number of arms to as many rewards.
          constraints: What arms must fulfil. Rewards are then dictionaries of "reward"
            `[B]` and "constraint" `[B, constraints]`, whose columns the constraints
            learn.
          error_loss_fn: The loss of rewards and predictions, for each element.
          gradient_clipping: The largest norm of each variable's gradient; None does
            not clip.
          emit_policy_info: The fields of the policy's info to fill in.
          num_samples_list: The variables that count the rows, one for each arm, or one
            if arms have features; none to make them.
          laplacian_matrix: The Laplacian matrix of a graph of the arms, `[A, A]`, such
            as of `utils.build_laplacian_over_ordinal_integer_actions`; None for no
            smoothing.
          laplacian_smoothing_weight: The weight of the smoothing.
          emit_log_probability: Whether the info has the logarithm of the action's
            probability.

        Raises:
          ValueError: A spec, or the network's output, is of another kind.
        """
        checks.check_gradient_clipping(gradient_clipping)
        reward_network = network.as_network(reward_network)
        num_actions = policy_utils.get_num_actions_from_tensor_spec(action_spec)
        num_models = 1 if accepts_per_arm_features else num_actions
        if num_samples_list and len(num_samples_list) != num_models:
            raise ValueError(
                f"num_samples_list: got {len(num_samples_list)} variables, expected "
                f"{num_models}; leave it out."
            )
        # Variables whose numbers are, one after the other, those of the arms.
        self._num_samples = list(num_samples_list) or [
            tf.Variable(tf.zeros([num_models]), trainable=False, name="num_samples")
        ]
        self._num_models = num_models
        policy = self._make_policy(
            time_step_spec=time_step_spec,
            action_spec=action_spec,
            reward_network=reward_network,
            observation_and_action_constraint_splitter=(
                observation_and_action_constraint_splitter
            ),
            accepts_per_arm_features=accepts_per_arm_features,
            constraints=constraints,
            emit_policy_info=emit_policy_info,
            emit_log_probability=emit_log_probability,
            seed=seed,
        )
        super().__init__(
            policy,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            enable_summaries=enable_summaries,
            train_step_counter=train_step_counter,
            name=name,
        )
        self._reward_network = reward_network
        self._constraints = tuple(constraints)
        self._error_loss_fn = loss_utils.element_wise(error_loss_fn)
        self._laplacian = laplacian_matrix
        self._smoothing = laplacian_smoothing_weight
        self._set_only_part(
            [reward_network, *(n for c in constraints for n in c.trained_networks)],
            optimizer,
            optimizers.each_to_norm(gradient_clipping),
        )

    @property
    def num_samples(self) -> tf.Tensor:
        """The sums of the rows' weights: of each arm `[A]`, or of all `[1]`."""
        return reward_prediction_base_policy.numbers_of(self._num_samples)

    def _make_policy(self, **kwargs: Any) -> Any:
        """Makes the policy; a subclass explores by another one."""
        policy = greedy_reward_prediction_policy.GreedyRewardPredictionPolicy
        return policy(**kwargs)

    def _variables(self) -> list[tf.Variable]:
        return [*super()._variables(), *self._num_samples]

    def _train(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> tf_agent.LossInfo:
        info = super()._train(experience, weights)
        rows = self._all_rows(experience, weights)
        belongs = tf.one_hot(rows.action, self._num_models)
        numbers = tf.linalg.matvec(belongs, rows.weights, transpose_a=True)
        sizes = [variable.shape.num_elements() for variable in self._num_samples]
        for variable, own in zip(
            self._num_samples, tf.split(numbers, sizes), strict=True
        ):
            variable.assign_add(
                tf.reshape(tf.cast(own, variable.dtype), variable.shape)
            )
        return info

    def _loss_of(self, rows: bandit_agent.Rows, training: bool) -> tf.Tensor:
        reward = rows.reward
        if self._constraints:
            reward = reward[bandit_spec_utils.REWARD_SPEC_KEY]
        errors = self._errors(rows, tf.cast(reward, tf.float32), training)
        loss = bandit_agent.mean_over_rows(errors, rows)
        for i, constraint in enumerate(self._constraints):
            targets = rows.reward[bandit_spec_utils.CONSTRAINTS_SPEC_KEY]
            targets = tf.reshape(targets, [tf.shape(rows.action)[0], -1])[:, i]
            errors = constraint.errors(
                rows.observation, rows.action, targets, training=training
            )
            loss += bandit_agent.mean_over_rows(errors, rows)
        return loss

    def _errors(
        self, rows: bandit_agent.Rows, reward: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """Returns the errors of the predicted rewards, `[n]`; see `row_errors`."""
        return loss_utils.row_errors(
            self._output(rows.observation, training),
            reward,
            rows.action,
            self._error_loss_fn,
            self._laplacian,
            self._smoothing,
        )

    def _output(self, observation: Any, training: bool) -> Any:
        """Returns the output of the network."""
        return self._reward_network(observation, training=training)[0]
