"""Implicit Q-learning, which never evaluates an action that is not in the data.

With critics Q_1 and Q_2, their targets Q_i', a state value V and a policy pi, an update
minimises, for each transition (s, a, r, s'),

    value:    |expectile - 1(u < 0)| u^2,  u = min_i Q_i'(s, a) - V(s)
    actor:    -min(exp(beta (min_i Q_i'(s, a) - V(s))), max_weight) log pi(a|s)
    critics:  sum_i L(r + gamma * d * V(s') - Q_i(s, a))

one after the other, where d is the environment's discount: 0 at a termination, 1 at a
time limit. Every loss uses recorded actions only. If the action is discrete, the
critics give the values of all actions, and the losses take that of the recorded one.
Kostrikov et al., "Offline reinforcement learning with implicit Q-learning" (2021,
arXiv:2110.06169), equations 5 to 7.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    actor_critic,
    actor_critic_networks,
    checks,
    critics,
    normalization,
    options,
    transitions,
    updates,
)
from tfrl.distributions import recorded
from tfrl.networks import network as network_lib
from tfrl.policies import greedy_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import nest_utils, number_checks


class IqlLossInfo(NamedTuple):
    """The parts of the loss, whose sum is the loss, and errors per example.

    Attributes:
      critic_loss: The critics' loss, a scalar.
      value_loss: The state value's loss, a scalar.
      actor_loss: The actor's loss, a scalar.
      td_loss: The critics' loss of each example, `[B]`; 0 where masked.
      td_error: Target minus prediction, `[B]`, of the critic with the larger error; 0
        where masked.
    """

    critic_loss: tf.Tensor
    value_loss: tf.Tensor
    actor_loss: tf.Tensor
    td_loss: Any = ()
    td_error: Any = ()


class IqlAgent(actor_critic.ActorCriticAgent):
    """An IQL agent, for continuous actions or for one discrete action.

    `train` returns each loss as it was before the update of its network.
    """

    _info = IqlLossInfo

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
        **settings: Unpack[options.Settings],
    ) -> None:
        """Builds the second critic, the target networks and the policies.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded float specs, or one scalar bounded integer spec
            with minimum 0.
          critic_network: A `Network` (or Keras layer) that maps pairs of observations
            and actions to values `[B]`, such as a `CriticNetwork`; for a discrete
            action one that maps observations to the values of all actions `[B, A]`,
            such as a `QNetwork`.
          value_network: A `Network` (or Keras layer) that maps observations to values
            `[B]`, such as a `ValueNetwork`.
          actor_network: A `Network` (or Keras layer) that maps observations to
            distributions of actions, such as an `ActorDistributionNetwork`.
          actor_optimizer: The optimizer of the actor; None for an agent that never
            trains.
          critic_optimizer: The optimizer of both critics, or None.
          value_optimizer: The optimizer of the state value, or None.
          expectile: The expectile of the recorded actions' values that V predicts, in
            (0, 1); the larger, the closer the value to the best recorded action. 0.9 is
            usual where good actions are rare.
          inverse_temperature: The factor beta of the advantages; 0 clones all recorded
            actions with equal weights.
          max_weight: The largest weight of an example in the actor's loss.
          critic_network_2: The second critic; a copy of the first with other initial
            weights if None.
          target_critic_network: The target of the first critic; a copy if None.
          target_critic_network_2: The target of the second critic; a copy if None.
          **settings: See `TdOptions` and `AgentOptions`. The defaults are
            `target_update_tau=0.005`, `gamma=0.99` and the squared error. The
            advantages, and so the best `inverse_temperature`, scale with
            `reward_scale_factor`.

        Raises:
          ValueError: An action is unbounded, or discrete and not the only one, the
            reward is not one scalar, the networks' outputs do not match, or a number is
            out of range.
          NotImplementedError: A network is recurrent.
        """
        td, common = options.from_settings(
            type(self),
            settings,
            target_update_tau=0.005,
            td_errors_loss_fn=tf.math.squared_difference,
            gamma=0.99,
        )
        time_step_spec = checks.as_time_step_spec(time_step_spec, "IQL")
        if any(map(tensor_spec.is_discrete, tf.nest.flatten(action_spec))):
            action_spec = tensor_spec.from_spec(action_spec)
            self._num_actions = checks.count_actions(
                action_spec,
                "IQL",
                "train several actions with agents.BehavioralCloningAgent",
            )
        else:
            action_spec = checks.as_continuous_action_spec(action_spec, "IQL")
        _check_numbers(expectile, inverse_temperature, max_weight)
        networks = actor_critic_networks.make_networks(
            time_step_spec,
            action_spec,
            actor_network,
            [
                critic_network,
                critic_network_2,
                target_critic_network,
                target_critic_network_2,
            ],
            without_target_actor=True,
            critics_see_actions=self._num_actions is None,
            normalizer=common.observation_normalizer,
        )
        checks.check_gives_distributions(networks.actor, "IQL")
        observation_spec = time_step_spec.observation
        (value_network,) = normalization.normalized_networks(
            common.observation_normalizer, observation_spec, value_network
        )
        value_network = network_lib.as_network(value_network, observation_spec)
        nest_utils.assert_value_spec(
            value_network.create_variables(observation_spec), "value_network"
        )
        trained = [*(critic for critic, _ in networks.critics), value_network]
        checks.check_not_recurrent([*trained, networks.actor], "IQL")
        policy = networks.policy(time_step_spec, action_spec, seed=common.seed)
        super().__init__(
            time_step_spec,
            action_spec,
            greedy_policy.GreedyPolicy(policy),
            policy,
            networks,
            td,
            common,
        )
        self._value_network = value_network
        self._expectile = expectile
        self._inverse_temperature = inverse_temperature
        self._max_weight = max_weight
        self._parts = [
            self._part("value", self._value_loss, [value_network], value_optimizer),
            self._actor_part(self._actor_loss, actor_optimizer),
            self._critic_part(self._critic_loss, critic_optimizer),
        ]

    def _measure_losses(self, batch: updates.Batch, extra: Any) -> dict[str, tf.Tensor]:
        """Returns the mean `advantage` of the recorded actions of a batch."""
        del extra
        advantage = self._advantage(batch.data)
        return {"advantage": losses.masked_mean(advantage, batch.data.valid)}

    def _advantage(
        self, data: transitions.Transitions, training: bool = False
    ) -> tf.Tensor:
        """Returns `min_i Q_i'(s, a) - V(s)`, `[B]`."""
        targets = [
            self._values(critic, data.time_step, data.action)
            for critic in self._target_critic_networks
        ]
        value = critics.outputs(self._value_network, data.time_step, training)
        return tf.reduce_min(targets, axis=0) - value

    def _value_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `|expectile - 1(u < 0)| u^2`, with the advantages u."""
        advantage = self._advantage(batch.data, batch.training)
        loss = losses.expectile_loss(advantage, self._expectile)
        return critics.mean(loss, batch, self._value_network), {}

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `-min(exp(beta advantage), max_weight) log pi(a|s)`."""
        data = batch.data
        output = critics.outputs(self._actor_network, data.time_step, batch.training)
        loss = losses.advantage_weighted_loss(
            recorded.log_probability(output, data.action, self.action_spec),
            self._advantage(data),
            self._inverse_temperature,
            self._max_weight,
        )
        return critics.mean(loss, batch, self._actor_network), {}

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `sum_i L(r + gamma d V(s') - Q_i(s, a))`."""
        values = critics.outputs(self._value_network, batch.data.next_time_step)
        return self._regress(batch, batch.data.targets(values))


def _check_numbers(
    expectile: float, inverse_temperature: float, max_weight: float
) -> None:
    number_checks.check_number(
        "expectile",
        expectile,
        0.0,
        1.0,
        excludes_low=True,
        excludes_high=True,
        remedy="0.7 is usual",
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
