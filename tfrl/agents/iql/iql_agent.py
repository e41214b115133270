"""Implicit Q-learning: learns from recorded experience without leaving its actions.

With critics Q_1 and Q_2, their targets Q_i', a state value V and a policy pi, an update
minimises, for each transition (s, a, r, s'),

    value:    |expectile - 1(u < 0)| u^2,  u = min_i Q_i'(s, a) - V(s)
    actor:    -min(exp(beta (min_i Q_i'(s, a) - V(s))), max_weight) log pi(a|s)
    critics:  sum_i L(r + gamma * d * V(s') - Q_i(s, a))

one after the other, where d is the environment's discount: 0 at a termination, 1 at a
time limit. No loss has an action other than those of the record. Kostrikov et al.,
"Offline reinforcement learning with implicit Q-learning" (2021, arXiv:2110.06169),
equations 5 to 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    actor_critic,
    checks,
    normalization,
    target_networks,
    tf_agent,
)
from tfrl.distributions import recorded
from tfrl.networks import network as network_lib
from tfrl.policies import actor_policy, greedy_policy
from tfrl.trajectories import time_step as ts
from tfrl.utils import nest_utils, number_checks, optimizers, variables

if TYPE_CHECKING:
    from tfrl.typing import types
    from tfrl.utils.reward_normalizer import RewardNormalizer
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class IqlLossInfo(NamedTuple):
    """The parts of the loss, whose sum it is, and errors per example.

    Attributes:
      critic_loss: The critics' loss, a scalar.
      value_loss: The state value's loss, a scalar.
      actor_loss: The actor's loss, a scalar.
      td_loss: The critics' loss of each example, `[B]`; 0 where masked.
      td_error: Target minus prediction, `[B]`, of the critic that is farther off; 0
        where masked.
    """

    critic_loss: tf.Tensor
    value_loss: tf.Tensor
    actor_loss: tf.Tensor
    td_loss: Any = ()
    td_error: Any = ()


class IqlAgent(actor_critic.ActorCriticAgent):
    """An IQL agent.

    `train` returns the losses as they were before each network's own update.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        critic_network: types.Network | types.Layer,
        value_network: types.Network | types.Layer,
        actor_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        value_optimizer: types.Optimizer | None,
        expectile: float = 0.7,
        inverse_temperature: float = 3.0,
        max_weight: float = 100.0,
        critic_network_2: types.Network | types.Layer | None = None,
        target_critic_network: types.Network | types.Layer | None = None,
        target_critic_network_2: types.Network | types.Layer | None = None,
        target_update_tau: float = 0.005,
        target_update_period: int = 1,
        td_errors_loss_fn: types.LossFn = tf.math.squared_difference,
        gamma: float = 0.99,
        reward_scale_factor: float = 1.0,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        *,
        n_step_update: int = 1,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
    ) -> None:
        """Builds the second critic, the target networks and the policies.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded floating specs.
          critic_network: A `Network` (or Keras layer) that maps pairs of observations
            and actions to values `[B]`, such as a `CriticNetwork`.
          value_network: A `Network` (or Keras layer) that maps observations to values
            `[B]`, such as a `ValueNetwork`.
          actor_network: A `Network` (or Keras layer) that maps observations to
            distributions of actions, such as an `ActorDistributionNetwork`.
          actor_optimizer: The optimizer of the actor; None for an agent that never
            trains.
          critic_optimizer: The optimizer of both critics, or None.
          value_optimizer: The optimizer of the state value, or None.
          expectile: The expectile of the recorded actions' values that V predicts, in
            (0, 1); the larger, the closer to the best of them. 0.9 is usual where good
            actions are rare.
          inverse_temperature: The factor beta of the advantages; 0 clones all recorded
            actions alike.
          max_weight: The largest weight of an example in the actor's loss.
          critic_network_2: The second critic; a copy of the first with other initial
            weights if None.
          target_critic_network: The target of the first critic; a copy if None.
          target_critic_network_2: The target of the second critic; a copy if None.
          target_update_tau: The step size of the targets' soft update; 1 copies the
            weights.
          target_update_period: The number of train steps between updates of the
            targets.
          td_errors_loss_fn: A loss of (targets, predictions), element by element.
          gamma: The discount factor.
          reward_scale_factor: The factor by which the rewards are multiplied. The
            advantages, and so the best `inverse_temperature`, scale with it.
          gradient_clipping: The largest norm of each variable's gradient.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          name: The module's name.
          n_step_update: The number `n` of steps in the return; `train` then takes
            experience with `T = n + 1`.
          seed: Seed of the policies' own random numbers.
          observation_normalizer: Normalizes the observations that the networks see, in
            the policies and the losses; such as a `StreamingTensorNormalizer` of the
            observation spec. Loops update it; see `update_normalizers`.
          reward_normalizer: Normalizes the rewards that the losses see, before
            `reward_scale_factor`; such as a `RewardNormalizer`.

        Raises:
          ValueError: An action is discrete or unbounded, the reward is not one scalar,
            the networks' outputs do not match, or a number is out of range.
          NotImplementedError: A network is recurrent.
        """
        time_step_spec = checks.as_time_step_spec(time_step_spec, "IQL")
        action_spec = checks.as_continuous_action_spec(action_spec, "IQL")
        _check_numbers(expectile, inverse_temperature, max_weight)
        observation_spec = time_step_spec.observation
        input_spec = (observation_spec, action_spec)
        (
            critic_network,
            critic_network_2,
            target_critic_network,
            target_critic_network_2,
        ) = normalization.normalized_critics(
            observation_normalizer,
            input_spec,
            critic_network,
            critic_network_2,
            target_critic_network,
            target_critic_network_2,
        )
        targets = target_networks.twin_critics(
            critic_network,
            critic_network_2,
            target_critic_network,
            target_critic_network_2,
            input_spec,
        )
        actor_network, value_network = normalization.normalized_networks(
            observation_normalizer, observation_spec, actor_network, value_network
        )
        actor_network = network_lib.as_network(actor_network, observation_spec)
        actor_network.create_variables(observation_spec)
        checks.check_gives_distributions(actor_network, "IQL")
        value_network = network_lib.as_network(value_network, observation_spec)
        nest_utils.assert_value_spec(
            value_network.create_variables(observation_spec), "value_network"
        )
        critics = [critic for critic, _ in targets]
        checks.check_not_recurrent([*critics, value_network, actor_network], "IQL")
        policy = actor_policy.ActorPolicy(
            time_step_spec, action_spec, actor_network=actor_network, seed=seed
        )
        super().__init__(
            time_step_spec,
            action_spec,
            policy=greedy_policy.GreedyPolicy(policy),
            collect_policy=policy,
            actor_network=actor_network,
            critic_networks=critics,
            target_pairs=targets,
            actor_optimizer=actor_optimizer,
            critic_optimizer=critic_optimizer,
            target_update_tau=target_update_tau,
            target_update_period=target_update_period,
            td_errors_loss_fn=td_errors_loss_fn,
            gamma=gamma,
            reward_scale_factor=reward_scale_factor,
            n_step_update=n_step_update,
            gradient_clipping=gradient_clipping,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            seed=seed,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
        )
        self._value_network = value_network
        self._value_optimizer = optimizers.OptimizerAdapter(
            value_optimizer,
            actor_critic.trainable_variables([value_network]),
            self._clip,
        )
        self._expectile = expectile
        self._inverse_temperature = inverse_temperature
        self._max_weight = max_weight

    def diagnose(self, experience: Any = None) -> dict[str, tf.Tensor]:
        """Returns the learning rates, and numbers of a batch.

        Args:
          experience: See `train`; None leaves out the numbers of a batch.

        Returns:
          The scalars of `ActorCriticAgent.diagnose`, `value_learning_rate`, and of a
          batch the mean `advantage` of the recorded actions.
        """
        values = super().diagnose(experience)
        rate = self._value_optimizer.learning_rate()
        values |= {} if rate is None else {"value_learning_rate": rate}
        if experience is not None:
            transitions = self._transitions(experience)
            values["advantage"] = losses.masked_mean(
                self._advantage(transitions), transitions.valid
            )
        return values

    def _variables(self) -> list[tf.Variable]:
        own = [*self._value_network.variables, *self._value_optimizer.variables()]
        return [*super()._variables(), *variables.as_tf_variables(own)]

    def _train(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> tf_agent.LossInfo:
        transitions = self._transitions(experience)
        value_loss, _ = self._minimize(
            lambda: (self._value_loss(transitions, weights, training=True), None),
            [self._value_network],
            self._value_optimizer,
        )
        actor_loss, _ = self._minimize(
            lambda: (self._actor_loss(transitions, weights, training=True), None),
            [self._actor_network],
            self._actor_optimizer,
        )
        critic_loss, critic = self._minimize(
            lambda: self._critic_loss(transitions, weights, training=True),
            self._critic_networks,
            self._critic_optimizer,
        )
        self._finish(value_loss, actor_loss, critic_loss)
        return self._loss_info(critic_loss, value_loss, actor_loss, critic)

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        """Returns the sum of the three losses, all of the current weights."""
        transitions = self._transitions(experience)
        critic_loss, critic = self._critic_loss(transitions, weights, training)
        return self._loss_info(
            critic_loss,
            self._value_loss(transitions, weights, training),
            self._actor_loss(transitions, weights, training),
            critic,
        )

    def _state_values(self, time_step: ts.TimeStep, training: bool) -> tf.Tensor:
        """Returns V, `[B]`."""
        values, _ = self._value_network(
            time_step.observation, step_type=time_step.step_type, training=training
        )
        return values

    def _advantage(
        self, transitions: actor_critic.Transitions, training: bool = False
    ) -> tf.Tensor:
        """Returns `min_i Q_i'(s, a) - V(s)`, `[B]`."""
        targets = [
            self._values(target, transitions.time_step, transitions.action)
            for _, target in self._target_pairs
        ]
        smallest = tf.reduce_min(tf.stack(targets), axis=0)
        return smallest - self._state_values(transitions.time_step, training)

    def _value_loss(
        self,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
        training: bool,
    ) -> tf.Tensor:
        loss = losses.expectile_loss(
            self._advantage(transitions, training), self._expectile
        )
        return self._mean(loss, transitions, weights, self._value_network)

    def _actor_loss(
        self,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
        training: bool,
    ) -> tf.Tensor:
        output, _ = self._actor_network(
            transitions.time_step.observation,
            step_type=transitions.time_step.step_type,
            training=training,
        )
        loss = losses.advantage_weighted_loss(
            recorded.log_probability(output, transitions.action, self.action_spec),
            self._advantage(transitions),
            self._inverse_temperature,
            self._max_weight,
        )
        return self._mean(loss, transitions, weights, self._actor_network)

    def _critic_loss(
        self,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
        training: bool,
    ) -> tuple[tf.Tensor, actor_critic.CriticLoss]:
        next_values = self._state_values(transitions.next_time_step, training=False)
        critic = self._compute_critic_loss(transitions, next_values, weights, training)
        return critic.loss, critic

    def _mean(
        self,
        loss: tf.Tensor,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
        network: Any,
    ) -> tf.Tensor:
        """Returns the mean of the examples' losses, with 0 for masked transitions."""
        return losses.aggregate_losses(
            self._masked(loss, transitions.valid),
            weights,
            regularization_loss=network.losses,
        ).total_loss

    def _loss_info(
        self,
        critic_loss: tf.Tensor,
        value_loss: tf.Tensor,
        actor_loss: tf.Tensor,
        critic: actor_critic.CriticLoss,
    ) -> tf_agent.LossInfo:
        info = IqlLossInfo(
            critic_loss, value_loss, actor_loss, critic.td_loss, critic.td_error
        )
        total = critic_loss + value_loss + actor_loss
        self._write_summaries(total, info._asdict())
        return tf_agent.LossInfo(total, info)


def _check_numbers(
    expectile: float, inverse_temperature: float, max_weight: float
) -> None:
    if not 0 < expectile < 1:
        raise ValueError(
            f"expectile: expected a number in (0, 1), got {expectile}; 0.7 is usual."
        )
    number_checks.check_number(
        "inverse_temperature",
        inverse_temperature,
        0.0,
        remedy="3 is usual, and 0 clones all recorded actions alike",
    )
    number_checks.check_number(
        "max_weight", max_weight, 0.0, excludes_low=True, remedy="100 is usual"
    )
