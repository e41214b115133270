"""Deep Q-learning, and its double form.

The loss of one transition (s, a, r, s') is L(y - Q(s, a)) with the target

    DQN:         y = r + gamma * d * max_a' Q_target(s', a')
    Double DQN:  y = r + gamma * d * Q_target(s', argmax_a' Q(s', a'))

where d is the environment's discount: 0 at a termination, 1 at a time limit. Mnih et
al., "Human-level control through deep reinforcement learning" (2015), algorithm 1; van
Hasselt et al., "Deep reinforcement learning with double Q-learning" (2016), equation 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.agents import data_converter, tf_agent
from tfrl.agents.dqn import construction, sequences
from tfrl.policies import q_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import common, optimizers, summaries, variables


class DqnLossInfo(NamedTuple):
    """Details of the loss, per example and before weighting.

    Attributes:
      td_loss: `[B]`, the loss of each transition, zero where masked; summed over time
        for a recurrent network.
      td_error: `[B]` (`[B, T-1]` for a recurrent network), target minus prediction.
    """

    td_loss: tf.Tensor
    td_error: tf.Tensor


def compute_td_targets(
    next_q_values: tf.Tensor, rewards: tf.Tensor, discounts: tf.Tensor
) -> tf.Tensor:
    """Returns `rewards + discounts * next_q_values`, without gradient."""
    return tf.stop_gradient(rewards + discounts * next_q_values)


class DqnAgent(tf_agent.TFAgent):
    """A DQN agent.

    Args:
      time_step_spec: a `TimeStep` of specs.
      action_spec: one scalar bounded integer spec with minimum 0.
      q_network: a `Network` (or Keras layer) that maps observations to `[B, n]` values.
      optimizer: what updates its weights; None for an agent that never trains.
      observation_and_action_constraint_splitter: splits an observation into what the
        network sees and a mask `[B, n]` of the valid actions.
      epsilon_greedy: the probability of a random action when collecting: a number, a
        tensor or variable, a callable evaluated at each step, or a Keras schedule of
        the train step counter.
      n_step_update: number of steps in the return; `train` then takes `T = n + 1`.
      boltzmann_temperature: collect with softmax(Q / temperature) instead; give
        `epsilon_greedy=None` then.
      emit_log_probability: whether policies add the action's log-probability.
      target_q_network: the target network; a fresh copy of `q_network` if None.
      target_update_tau: step of the target's soft update; 1 copies.
      target_update_period: train steps between updates of the target.
      td_errors_loss_fn: a loss of (targets, predictions), element by element; Huber if
        None.
      gamma: the discount factor.
      reward_scale_factor: multiplies the rewards.
      gradient_clipping: the norm each variable's gradient is clipped to.
      debug_summaries: see `TFAgent`.
      summarize_grads_and_vars: see `TFAgent`.
      train_step_counter: see `TFAgent`.
      training_data_spec: see `TFAgent`.
      name: the module's name.
      seed: seed of the policies' own random streams, which are used where a call gives
        no seed.

    Raises:
      ValueError: an action spec that is not one scalar from 0 up, a reward that is not
        one scalar, a network that does not give one value per action, both kinds of
        exploration at once, a target that shares variables with the network or does not
        match it.
      NotImplementedError: n-step updates with a recurrent network.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: Any,
        q_network: Any,
        optimizer: Any,
        observation_and_action_constraint_splitter: Callable | None = None,
        epsilon_greedy: Any = 0.1,
        n_step_update: int = 1,
        boltzmann_temperature: Any = None,
        emit_log_probability: bool = False,
        target_q_network: Any = None,
        target_update_tau: float = 1.0,
        target_update_period: int = 1,
        td_errors_loss_fn: Callable | None = None,
        gamma: float = 1.0,
        reward_scale_factor: float = 1.0,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        training_data_spec: Any = None,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        tf_agent.check_time_step_spec(time_step_spec)
        time_step_spec = tensor_spec.from_spec(time_step_spec)
        tf_agent.check_scalar_reward(time_step_spec, "DQN")
        action_spec = tensor_spec.from_spec(action_spec)
        num_actions = construction.check_action_spec(action_spec)
        construction.check_exploration(epsilon_greedy, boltzmann_temperature)
        variables.check_tau("target_update_tau", target_update_tau)
        train_step_counter = tf_agent.as_train_step_counter(train_step_counter)

        self._splitter = observation_and_action_constraint_splitter
        input_spec, _ = self._split(time_step_spec.observation)
        q_network, target_q_network = construction.build_networks(
            q_network, target_q_network, input_spec, num_actions
        )
        recurrent = bool(tf.nest.flatten(q_network.state_spec))
        construction.check_n_step_update(n_step_update, recurrent)
        greedy, collect = construction.make_policies(
            q_policy.QPolicy(
                time_step_spec,
                action_spec,
                q_network=q_network,
                emit_log_probability=emit_log_probability,
                observation_and_action_constraint_splitter=self._splitter,
            ),
            construction.following(epsilon_greedy, train_step_counter),
            construction.following(boltzmann_temperature, train_step_counter),
            seed,
        )
        super().__init__(
            time_step_spec,
            action_spec,
            greedy,
            collect,
            train_sequence_length=None if recurrent else n_step_update + 1,
            training_data_spec=training_data_spec,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
        )
        self._q_network = q_network
        self._target_q_network = target_q_network
        self._optimizer = optimizers.OptimizerAdapter(
            optimizer, q_network.trainable_variables
        )
        self._td_errors_loss_fn = td_errors_loss_fn or common.element_wise_huber_loss
        self._gamma = gamma
        self._reward_scale_factor = reward_scale_factor
        self._gradient_clipping = gradient_clipping
        self._target_update_tau = target_update_tau
        self._update_target = common.Periodically(
            self._move_target, target_update_period, "update_target"
        )
        self._recurrent = recurrent
        # A recurrent network keeps the time dimension; otherwise the n steps are folded
        # into one, and nothing below depends on n.
        self._as_transition = (
            data_converter.AsTransition(self.data_context, squeeze_time_dim=False)
            if recurrent
            else data_converter.AsNStepTransition(
                self.data_context, gamma=gamma, n=n_step_update
            )
        )

    def _initialize(self) -> None:
        common.soft_variables_update(
            self._q_network.variables, self._target_q_network.variables, tau=1.0
        )

    def _move_target(self) -> None:
        common.soft_variables_update(
            self._q_network.variables,
            self._target_q_network.variables,
            tau=self._target_update_tau,
            tau_non_trainable=1.0,
        )

    def _variables(self) -> list[tf.Variable]:
        return variables.as_tf_variables(
            [
                *self._q_network.variables,
                *self._target_q_network.variables,
                *self._optimizer.variables(),
                *self._update_target.variables(),
            ]
        )

    def _train(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> tf_agent.LossInfo:
        with tf.GradientTape() as tape:
            loss_info = self._loss(experience, weights=weights, training=True)
        trained = self._q_network.trainable_variables
        gradients = optimizers.clip_gradient_norms(
            tape.gradient(loss_info.loss, trained), self._gradient_clipping
        )
        checked = self._update(
            loss_info.loss,
            gradients,
            trained,
            self._optimizer,
            untrained=self._q_network.non_trainable_variables,
        )
        with tf.control_dependencies([checked]):
            self._update_target()
        return loss_info

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        time_step, action_step, next_time_step = self._as_transition(experience)
        current = sequences.current_steps(time_step) if self._recurrent else time_step
        q_values = self._q_values(current, training)
        predictions = common.index_with_actions(q_values, action_step.action)
        # Before the network is applied to anything else: layers may penalise their
        # activities.
        regularization_losses = self._q_network.losses
        if self._recurrent:
            steps = sequences.whole_sequence(time_step, next_time_step)
            next_q_values = self._next_q_values(steps)[:, 1:]
        else:
            next_q_values = self._next_q_values(next_time_step)
        targets = compute_td_targets(
            next_q_values,
            rewards=self._reward_scale_factor * next_time_step.reward,
            discounts=self._gamma * next_time_step.discount,
        )
        # Boundaries count in the mean with a loss of zero: dividing by the number of
        # valid transitions instead would give those of a boundary-rich batch more
        # weight.
        valid = ~time_step.is_last()
        # Masked before the loss, too: the gradient of a loss that is not finite would
        # be NaN even where it is multiplied by zero.
        targets = tf.where(valid, targets, tf.stop_gradient(predictions))
        td_error = targets - predictions
        td_loss = self._td_errors_loss_fn(targets, predictions)
        construction.check_element_wise(td_loss, td_error)
        td_loss = tf.where(valid, td_loss, 0.0)
        if self._recurrent:
            td_loss = tf.reduce_sum(td_loss, axis=1)
        losses = common.aggregate_losses(
            per_example_loss=td_loss,
            sample_weight=weights,
            regularization_loss=regularization_losses,
        )
        self._summarize(losses, td_loss, td_error, predictions, next_q_values)
        return tf_agent.LossInfo(losses.total_loss, DqnLossInfo(td_loss, td_error))

    def _q_values(self, time_step: ts.TimeStep, training: bool = False) -> tf.Tensor:
        """Q of each action, `[B, n]`."""
        observation, _ = self._split(time_step.observation)
        q_values, _ = self._q_network(
            observation, step_type=time_step.step_type, training=training
        )
        return q_values

    def _target_q_values(self, time_step: ts.TimeStep) -> tf.Tensor:
        """Q of each action by the target network, `[B, n]`."""
        observation, _ = self._split(time_step.observation)
        q_values, _ = self._target_q_network(observation, step_type=time_step.step_type)
        return q_values

    def _next_q_values(self, next_time_step: ts.TimeStep) -> tf.Tensor:
        """Q_target of its own best valid action, `[B]`."""
        q_values = self._target_q_values(next_time_step)
        if self._splitter is None:
            return tf.reduce_max(q_values, axis=-1)
        return common.index_with_actions(
            q_values, self._best_actions(q_values, next_time_step)
        )

    def _best_actions(self, q_values: tf.Tensor, time_step: ts.TimeStep) -> tf.Tensor:
        """The valid action of the highest value, int32 `[B]`; 0 if none is valid."""
        _, mask = self._split(time_step.observation)
        if mask is not None:
            q_values = tf.where(tf.cast(mask, tf.bool), q_values, q_values.dtype.min)
        return tf.argmax(q_values, axis=-1, output_type=tf.int32)

    def _split(self, observation: Any) -> tuple[Any, Any]:
        """The network's part of the observation, and the action mask or None."""
        return (
            (observation, None)
            if self._splitter is None
            else self._splitter(observation)
        )

    def _summarize(
        self,
        losses: common.AggregatedLosses,
        td_loss: tf.Tensor,
        td_error: tf.Tensor,
        q_values: tf.Tensor,
        next_q_values: tf.Tensor,
    ) -> None:
        if not self.summaries_enabled:
            return
        reg_loss = losses.regularization
        summaries.summarize_scalar_dict(
            {
                "td_loss": losses.weighted,
                "reg_loss": 0.0 if reg_loss is None else reg_loss,
                "total_loss": losses.total_loss,
            },
            step=self.train_step_counter,
        )
        if self.debug_summaries:
            summaries.summarize_tensor_dict(
                {
                    "loss/td_error": td_error,
                    "loss/td_loss": td_loss,
                    "loss/q_values": q_values,
                    "loss/next_q_values": next_q_values,
                    "loss/diff_q_values": q_values - next_q_values,
                },
                step=self.train_step_counter,
            )


class DdqnAgent(DqnAgent):
    """A Double DQN agent: the online network picks the action, the target rates it."""

    def _next_q_values(self, next_time_step: ts.TimeStep) -> tf.Tensor:
        online_q_values = self._q_values(next_time_step)
        return common.index_with_actions(
            self._target_q_values(next_time_step),
            self._best_actions(online_q_values, next_time_step),
        )
