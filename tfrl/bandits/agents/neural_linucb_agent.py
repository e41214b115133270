"""LinUCB on the outputs of a network that is trained at first, and then fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.agents import checks, tf_agent
from tfrl.bandits.agents import bandit_agent, linear_bandit_agent
from tfrl.bandits.policies import loss_utils, neural_linucb_policy
from tfrl.bandits.policies.neural_linucb_policy import (
    NeuralLinUCBVariableCollection as NeuralLinUCBVariableCollection,
)
from tfrl.compilation import replicas, variable_substitution
from tfrl.networks import network, sequential
from tfrl.policies import utils as policy_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common, number_checks
from tfrl.utils.optimization import optimizers


class NeuralLinUCBAgent(linear_bandit_agent.LinearModelsAgent):
    """Trains a network with a reward layer, then LinUCB on the network's outputs.

    In the first `encoding_network_num_train_steps` calls of `train`, the network and a
    layer without bias learn rewards by regression. From then on the network stays as it
    is, and rows change the sums of linear models, as in `LinearBanditAgent`.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        encoding_network: types.Network | types.Layer,
        encoding_network_num_train_steps: int,
        encoding_dim: int,
        optimizer: types.Optimizer | None,
        variable_collection: NeuralLinUCBVariableCollection | None = None,
        alpha: Any = 1.0,
        gamma: float = 1.0,
        epsilon_greedy: float = 0.0,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        accepts_per_arm_features: bool = False,
        distributed_train_encoding_network: bool = False,
        error_loss_fn: types.LossFn = common.element_wise_squared_loss,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        emit_policy_info: Sequence[str] = (),
        emit_log_probability: bool = False,
        dtype: tf.DType = tf.float64,
        name: str | None = None,
        *,
        tikhonov_weight: float = 1.0,
        seed: int | None = None,
    ) -> None:
        """Makes the reward layer, the models and the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          encoding_network: A network (or Keras layer) that maps observations to
            `[B, encoding_dim]`, or to `[B, A, encoding_dim]` if arms have features.
          encoding_network_num_train_steps: How many train steps train the network; 0 or
            less if it is trained already.
          encoding_dim: The number of the network's outputs.
          optimizer: The optimizer of the network; None if it is trained already.
          variable_collection: The state of the models; None makes it.
          alpha: The factor of the standard deviations: a number, or a variable.
          gamma: See `LinearBanditAgent`.
          epsilon_greedy: The probability of a uniform allowed arm in the first phase.
          observation_and_action_constraint_splitter: Splits an observation into the
            network's input and a mask of the allowed arms.
          accepts_per_arm_features: Whether arms have features; one model then serves
            all arms.
          distributed_train_encoding_network: With several replicas, which cannot take
            branches, whether it is the first phase; the number of steps then has no
            effect.
          error_loss_fn: The loss of rewards and predictions, for each element.
          gradient_clipping: The largest norm of each variable's gradient; None does
            not clip.
          emit_policy_info: The fields of the policy's info to fill in.
          emit_log_probability: Whether the info has the logarithm of the action's
            probability.
          dtype: The dtype of the lists of sums; the sums are float64.
          tikhonov_weight: See `LinearBanditAgent`.
          seed: Seeds the reward layer and the policy.

        Raises:
          ValueError: A number is out of its range, or a spec or the network's output is
            of another kind.
          TypeError: `variable_collection` is of another kind.
        """
        for argument, number in (("gamma", gamma), ("epsilon_greedy", epsilon_greedy)):
            number_checks.check_number(argument, number, 0, 1, remedy="see the docs")
        checks.check_gradient_clipping(gradient_clipping)
        encoder = network.as_network(encoding_network)
        splitter = observation_and_action_constraint_splitter
        num_models = 1
        if not accepts_per_arm_features:
            num_models = policy_utils.get_num_actions_from_tensor_spec(action_spec)
        variable_collection = bandit_agent.as_collection(
            variable_collection,
            NeuralLinUCBVariableCollection,
            num_models,
            encoding_dim,
            dtype,
        )
        variable_collection.solve(tikhonov_weight)
        initializer = keras.initializers.RandomUniform(-0.03, 0.03, seed)
        layer = keras.layers.Dense(
            num_models, use_bias=False, kernel_initializer=initializer
        )
        reward_layer = sequential.Sequential(
            [layer], tf.TensorSpec([encoding_dim], tf.float32)
        )
        policy = neural_linucb_policy.NeuralLinUCBPolicy(
            encoder,
            encoding_dim,
            reward_layer,
            epsilon_greedy,
            variable_collection.actions_from_reward_layer,
            time_step_spec=time_step_spec,
            alpha=alpha,
            emit_policy_info=emit_policy_info,
            emit_log_probability=emit_log_probability,
            accepts_per_arm_features=accepts_per_arm_features,
            distributed_use_reward_layer=distributed_train_encoding_network,
            observation_and_action_constraint_splitter=splitter,
            action_spec=action_spec,
            tikhonov_weight=tikhonov_weight,
            seed=seed,
            **variable_collection.policy_arguments(),
        )
        super().__init__(
            policy,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
        )
        self._encoding_network = encoder
        self._reward_layer = reward_layer
        self._variable_collection = variable_collection
        self._untrained = [variable_collection]
        self._num_train_steps = encoding_network_num_train_steps
        self._distributed_first = distributed_train_encoding_network
        self._error_loss_fn = loss_utils.element_wise(error_loss_fn)
        self._alpha, self._forgetting = alpha, gamma
        self._ridge = tikhonov_weight
        self._set_only_part(
            [encoder, reward_layer],
            optimizer,
            optimizers.each_to_norm(gradient_clipping),
        )
        self._set_phase()

    @property
    def actions_from_reward_layer(self) -> tf.Variable:
        """Whether the reward layer chooses arms, and the next train step trains it."""
        return self._variable_collection.actions_from_reward_layer

    def _set_phase(self) -> None:
        """Sets the phase of the next train step."""
        if replicas.are_several():
            is_first: Any = self._distributed_first
        else:
            is_first = self.train_step_counter < self._num_train_steps
        self.actions_from_reward_layer.assign(is_first)

    def _train(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> tf_agent.LossInfo:
        def first() -> tf.Tensor:
            return self._update_parts(self._batch(experience, weights, True)).loss

        def later() -> tf.Tensor:
            rows = self._all_rows(experience, weights)
            x = self._features(rows)
            loss = self._error_of_models(rows, x)
            with tf.control_dependencies([loss]):
                self._add_features(rows, x)
            self._count(loss)
            return loss

        if replicas.are_several():
            loss = first() if self._distributed_first else later()
        else:
            is_first = self.train_step_counter < self._num_train_steps
            at_first = variable_substitution.cond(is_first, first, tf.constant(0.0))
            loss = at_first + variable_substitution.cond(
                ~is_first, later, tf.constant(0.0)
            )
        with tf.control_dependencies([loss]):
            self._set_phase()
        return tf_agent.LossInfo(loss, extra=())

    def _loss_of(self, rows: bandit_agent.Rows, training: bool) -> tf.Tensor:
        """Returns the mean error of the present phase's predictions, weighted."""
        first = self._error_of_layer(rows, training)
        later = self._error_of_models(rows, self._features(rows))
        return tf.where(self.actions_from_reward_layer.read_value(), first, later)

    def _whole_loss(self, batch: Any) -> tuple[tf.Tensor, dict[str, Any]]:
        rows = self._rows(batch.data, batch.weights)
        loss = self._error_of_layer(rows, batch.training)
        self._summaries.write_losses(loss, {})
        return loss, {"extra": ()}

    def _features(self, rows: bandit_agent.Rows) -> tf.Tensor:
        return tf.cast(self._encoded(rows), tf.float64)

    def _encoded(self, rows: bandit_agent.Rows, training: bool = False) -> tf.Tensor:
        """Returns the outputs of the network for the chosen arms, `[n, d]`."""
        encoded, _ = self._encoding_network(rows.observation, training=training)
        return encoded[:, 0] if self._accepts_per_arm_features else encoded

    def _error_of_layer(self, rows: bandit_agent.Rows, training: bool) -> tf.Tensor:
        output, _ = self._reward_layer(self._encoded(rows, training))
        predicted = tf.gather(output, rows.action, batch_dims=1)
        return self._mean_error(predicted, rows)

    def _error_of_models(self, rows: bandit_agent.Rows, x: tf.Tensor) -> tf.Tensor:
        return self._mean_error(tf.cast(self._predicted(rows, x), tf.float32), rows)

    def _mean_error(self, predicted: tf.Tensor, rows: bandit_agent.Rows) -> tf.Tensor:
        error = self._error_loss_fn(tf.cast(rows.reward, tf.float32), predicted)
        return bandit_agent.mean_over_rows(error, rows)
