"""Deep Q-learning and Double DQN.

The loss of one transition (s, a, r, s') is L(y - Q(s, a)) with the target

    DQN:         y = r + gamma * d * max_a' Q_target(s', a')
    Double DQN:  y = r + gamma * d * Q_target(s', argmax_a' Q(s', a'))

where d is the environment's discount: 0 at a termination, 1 at a time limit. Mnih et
al., "Human-level control through deep reinforcement learning" (2015), algorithm 1; van
Hasselt et al., "Deep reinforcement learning with double Q-learning" (2016), equation 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, data_converter, sequences, tf_agent
from tfrl.agents.dqn import (
    construction,
    diagnostics,
    loss_summaries,
    q_network_agent,
)
from tfrl.losses import masking
from tfrl.networks import utils as network_utils
from tfrl.policies import q_policy, tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import common, optimizers, schedules

if TYPE_CHECKING:
    from tfrl.typing import types
    from tfrl.utils.reward_normalizer import RewardNormalizer
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class DqnLossInfo(NamedTuple):
    """Details of the loss, per example and before weighting.

    Attributes:
      td_loss: The loss of each transition, `[B]`, zero where masked. For a recurrent
        network, it is summed over time.
      td_error: Target minus prediction, `[B]` (`[B, T-1]` for a recurrent network).
    """

    td_loss: tf.Tensor
    td_error: tf.Tensor


def compute_td_targets(
    next_q_values: tf.Tensor, rewards: tf.Tensor, discounts: tf.Tensor
) -> tf.Tensor:
    """Returns `rewards + discounts * next_q_values`, without gradient.

    Scalars are broadcast to the shape of `next_q_values`, `[B]` or `[B, T]`.
    """
    ones = tf.ones_like(next_q_values)
    return losses.td_target(rewards * ones, discounts * ones, next_q_values)


class DqnAgent(q_network_agent.QNetworkAgent):
    """A DQN agent.

    Subclasses override `_td_error` to change the loss, or `_compute_next_q_values` to
    change the value of the next state. `docs/agents.md` lists all hooks.
    """

    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "_best_actions": "override _compute_next_q_values(next_time_steps, info)",
        "_next_q_values": "override _compute_next_q_values(next_time_steps, info)",
        "_q_values": "override _compute_q_values(time_steps, actions, training)",
        "_target_q_values": "override _compute_next_q_values(next_time_steps, info)",
        "_td_loss": (
            "override _td_error(predictions, transition, rewards, discounts, "
            "td_errors_loss_fn)"
        ),
    }

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        q_network: types.Network | types.Layer,
        optimizer: types.Optimizer | None,
        observation_and_action_constraint_splitter: types.Splitter = None,
        epsilon_greedy: types.FloatOrSchedule | None = 0.1,
        n_step_update: int = 1,
        boltzmann_temperature: types.FloatOrSchedule | None = None,
        emit_log_probability: bool = False,
        target_q_network: types.Network | types.Layer | None = None,
        target_update_tau: float = 1.0,
        target_update_period: int = 1,
        td_errors_loss_fn: types.LossFn | None = None,
        gamma: float = 1.0,
        reward_scale_factor: float = 1.0,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        training_data_spec: types.NestedTensorSpec | None = None,
        name: str | None = None,
        *,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
    ) -> None:
        """Builds the target network and the policies.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One scalar bounded integer spec with minimum 0.
          q_network: A `Network` (or Keras layer) that maps observations to values
            `[B, n]`.
          optimizer: The optimizer of the network's weights; None for an agent that
            never trains.
          observation_and_action_constraint_splitter: A function that splits an
            observation into the network's input and a mask `[B, n]` of the valid
            actions.
          epsilon_greedy: The probability of a random action when collecting: a number,
            a tensor or variable, a callable evaluated at each step, or a Keras schedule
            of the train step counter.
          n_step_update: The number `n` of steps in the return; `train` then takes
            experience with `T = n + 1`.
          boltzmann_temperature: The temperature for collecting with softmax(Q /
            temperature); it requires `epsilon_greedy=None`.
          emit_log_probability: Whether policies add the action's log-probability.
          target_q_network: The target network; a new copy of `q_network` if None.
          target_update_tau: The step size of the target's soft update; 1 copies the
            weights.
          target_update_period: The number of train steps between updates of the target.
          td_errors_loss_fn: A loss of (targets, predictions), element by element; Huber
            if None.
          gamma: The discount factor.
          reward_scale_factor: The factor by which the rewards are multiplied.
          gradient_clipping: The largest norm of each variable's gradient.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          training_data_spec: See `TFAgent`.
          name: The module's name.
          seed: Seed of the policies' own random numbers, for calls without a seed.
          observation_normalizer: Normalizes the observations that the networks see, in
            the policies and the losses; such as a `StreamingTensorNormalizer` of the
            observation spec, without the mask of a splitter. Loops update it; see
            `update_normalizers`.
          reward_normalizer: Normalizes the rewards that the losses see, before
            `reward_scale_factor`; such as a `RewardNormalizer`.

        Raises:
          ValueError: The action spec is not one scalar with minimum 0, the reward is
            not one scalar, the network does not return one value per action, not
            exactly one kind of exploration is given, or the target network shares
            variables with the network or does not match it.
          NotImplementedError: N-step updates with a recurrent network.
        """
        time_step_spec = checks.as_time_step_spec(time_step_spec, "DQN")
        action_spec = tensor_spec.from_spec(action_spec)
        self._check_action_spec(action_spec)
        construction.check_exploration(epsilon_greedy, boltzmann_temperature)
        construction.check_exploration_values(epsilon_greedy, boltzmann_temperature)
        checks.check_target_update(target_update_tau, target_update_period)
        checks.check_scale_of_rewards(reward_scale_factor)
        checks.check_gamma(gamma)
        checks.check_gradient_clipping(gradient_clipping)
        train_step_counter = checks.as_train_step_counter(train_step_counter)

        self._build_networks(
            q_network,
            target_q_network,
            time_step_spec.observation,
            observation_and_action_constraint_splitter,
            observation_normalizer,
        )
        checks.check_n_step_update(n_step_update, self._recurrent, "q_network")
        # If these are variables, the policies track them.
        epsilon_greedy = schedules.follow(
            "epsilon_greedy", epsilon_greedy, train_step_counter
        )
        boltzmann_temperature = schedules.follow(
            "boltzmann_temperature", boltzmann_temperature, train_step_counter
        )
        self._set_untracked("_epsilon_greedy", epsilon_greedy)
        self._set_untracked("_boltzmann_temperature", boltzmann_temperature)
        self._policy_seed = seed
        greedy, collect = self._setup_policy(
            time_step_spec,
            action_spec,
            self._boltzmann_temperature,
            emit_log_probability,
        )
        super().__init__(
            time_step_spec,
            action_spec,
            greedy,
            collect,
            train_sequence_length=None if self._recurrent else n_step_update + 1,
            training_data_spec=training_data_spec,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
        )
        self._optimizer = optimizers.OptimizerAdapter(
            optimizer,
            self._q_network.trainable_variables,
            optimizers.each_to_norm(gradient_clipping),
        )
        self._td_errors_loss_fn = td_errors_loss_fn or common.element_wise_huber_loss
        self._gamma = gamma
        self._reward_scale_factor = reward_scale_factor
        self._update_target = self._get_target_updater(
            target_update_tau, target_update_period
        )
        # A recurrent network keeps the time dimension; otherwise the n steps are folded
        # into one, and nothing below depends on n.
        self._as_transition = (
            data_converter.AsTransition(self.data_context, squeeze_time_dim=False)
            if self._recurrent
            else data_converter.AsNStepTransition(
                self.data_context, gamma=gamma, n=n_step_update
            )
        )

    def diagnose(self, experience: Any = None) -> dict[str, tf.Tensor]:
        """Returns the learning rate and the exploration; see `diagnostics.of_batch`."""
        rate = self._optimizer.learning_rate()
        values = {} if rate is None else {"learning_rate": rate}
        values |= diagnostics.of_exploration(self)
        if experience is not None:
            values |= diagnostics.of_batch(self, experience)
        return values

    def _check_action_spec(self, action_spec: Any) -> None:
        """Raises a ValueError unless DQN can handle the spec; counts the actions."""
        self._num_actions = construction.check_action_spec(action_spec)

    def _check_network_output(self, net: Any, label: str) -> None:
        """Raises a ValueError unless the network gives one value per action."""
        network_utils.check_single_floating_network_output(
            net.create_variables(), (self._num_actions,), label=label
        )

    def _setup_policy(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: Any,
        boltzmann_temperature: Any,
        emit_log_probability: bool,
    ) -> tuple[tf_policy.TFPolicy, tf_policy.TFPolicy]:
        """Returns the policy to deploy and the collecting policy."""
        policy = q_policy.QPolicy(
            time_step_spec,
            action_spec,
            self._q_network,
            emit_log_probability,
            self._observation_and_action_constraint_splitter,
        )
        return construction.make_policies(
            policy, self._epsilon_greedy, boltzmann_temperature, self._policy_seed
        )

    def _train(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> tf_agent.LossInfo:
        def compute_loss() -> tuple[tf.Tensor, Any]:
            return self._loss(
                experience,
                td_errors_loss_fn=self._td_errors_loss_fn,
                gamma=self._gamma,
                reward_scale_factor=self._reward_scale_factor,
                weights=weights,
                training=True,
            )

        checked, extra = self._gradient_step(
            compute_loss,
            self._q_network.trainable_variables,
            self._optimizer,
            self._q_network.non_trainable_variables,
        )
        self._count(checked)
        with tf.control_dependencies([checked]):
            self._update_target()
        return tf_agent.LossInfo(checked, extra)

    # TF-Agents' order of arguments; the base class calls this method by keyword.
    def _loss(  # type: ignore[override]
        self,
        experience: Any,
        td_errors_loss_fn: Callable | None = None,
        gamma: Any = None,
        reward_scale_factor: Any = None,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        """Returns the mean loss of the transitions; masked transitions count as 0.

        Args:
          experience: See `TFAgent.train`.
          td_errors_loss_fn: A loss of (targets, predictions); the agent's if None.
          gamma: The discount factor; the agent's if None.
          reward_scale_factor: The factor for the rewards; the agent's if None.
          weights: See `TFAgent.train`.
          training: Whether the Q-network is applied as in training.
        """
        if gamma is None:
            gamma = self._gamma
        if reward_scale_factor is None:
            reward_scale_factor = self._reward_scale_factor
        transition = self._as_transition(experience)
        # Boundaries count in the mean with a loss of zero. Dividing by the number of
        # valid transitions would give more weight to batches with many boundaries.
        valid = ~transition.time_step.is_last()
        # The inputs of the loss are masked, too: the gradient of a loss that is not
        # finite would be NaN even where the loss is multiplied by zero.
        reached = transition.next_time_step
        rewards = masking.masked(reward_scale_factor * reached.reward, valid)
        discounts = masking.masked(gamma * reached.discount, valid)
        if self._recurrent:
            transition = sequences.unroll(transition)
        predictions = self._compute_q_values(
            transition.time_step, transition.action_step.action, training=training
        )
        # Read before the network is applied to another input, because the losses may
        # include penalties on the activations.
        regularization_losses = self._q_network.losses
        td_loss, td_error = self._td_error(
            predictions,
            transition,
            rewards,
            discounts,
            td_errors_loss_fn or self._td_errors_loss_fn,
        )
        construction.check_per_transition(
            type(self).__name__, td_loss, td_error, valid.shape
        )
        td_loss = masking.masked(td_loss, valid)
        td_error = masking.masked(td_error, valid)
        if self._recurrent:
            td_loss = tf.reduce_sum(td_loss, axis=1)
        aggregated = losses.aggregate_losses(
            td_loss, weights, regularization_loss=regularization_losses
        )
        loss_summaries.write_losses(self, aggregated, td_loss, td_error)
        return tf_agent.LossInfo(aggregated.total_loss, DqnLossInfo(td_loss, td_error))

    def _td_error(
        self,
        predictions: Any,
        transition: trajectory.Transition,
        rewards: tf.Tensor,
        discounts: tf.Tensor,
        td_errors_loss_fn: Callable,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the loss and the error of each transition; `_loss` masks them.

        With a recurrent network, all shapes are `[B, T - 1]` instead of `[B]`, except
        that `transition.next_time_step` holds all `T` steps. Apply a network to all of
        them and pass its output to `_at_next_steps`.

        Args:
          predictions: The result of `_compute_q_values`: Q of the actions taken, `[B]`.
          transition: The `Transition` `[B, ...]`.
          rewards: The rewards of the transitions, times `reward_scale_factor`, `[B]`; 0
            where masked.
          discounts: Gamma times the environment's discounts, `[B]`; 0 where masked.
          td_errors_loss_fn: A loss of (targets, predictions), element by element.

        Returns:
          The loss `[B]`, which is differentiated, and the error `[B]`, which sets the
          priorities of prioritized replay.
        """
        next_q_values = self._at_next_steps(
            self._compute_next_q_values(
                transition.next_time_step, transition.action_step.info
            )
        )
        targets = losses.td_target(rewards, discounts, next_q_values)
        td_error = targets - predictions
        td_loss = td_errors_loss_fn(targets, predictions)
        checks.check_element_wise(td_loss, td_error)
        loss_summaries.write_q_values(self, predictions, next_q_values)
        return td_loss, td_error

    def _compute_q_values(
        self, time_steps: ts.TimeStep, actions: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Returns the Q-network's values of the actions, `[B]`.

        If the network returns `m` numbers per action, `[B, n, m]`, the result is
        `[B, m]`.
        """
        q_values = self._apply_network(self._q_network, time_steps, training)
        return losses.action_value(q_values, actions)

    def _compute_next_q_values(
        self, next_time_steps: ts.TimeStep, info: Any
    ) -> tf.Tensor:
        """Returns the target network's value of its best action, `[B]`.

        Args:
          next_time_steps: The `TimeStep` after the actions; see `_td_error` about
            recurrent networks.
          info: The `PolicyStep.info` of the actions.
        """
        del info
        q_values = self._apply_network(self._target_q_network, next_time_steps)
        if self._observation_and_action_constraint_splitter is None:
            return losses.best_action_value(q_values)
        return losses.best_action_value(
            q_values, self._possible(q_values, next_time_steps)
        )


class DdqnAgent(DqnAgent):
    """A Double DQN agent: the online network picks the action, the target rates it."""

    def _compute_next_q_values(
        self, next_time_steps: ts.TimeStep, info: Any
    ) -> tf.Tensor:
        del info
        online = self._apply_network(self._q_network, next_time_steps)
        return losses.best_action_value(
            self._apply_network(self._target_q_network, next_time_steps),
            self._possible(online, next_time_steps),
        )
