"""What agents share whose actor follows the critic's gradient dQ/da: DDPG and D4PG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl import losses
from tfrl.agents import actor_critic_networks
from tfrl.agents.ddpg import deterministic_actor_agent
from tfrl.policies import tf_policy
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.typing import types


class PolicyGradientAgent(deterministic_actor_agent.DeterministicActorAgent):
    """Base class of agents with one critic, whose gradient dQ/da moves the actor."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        policy: tf_policy.TFPolicy,
        collect_policy: tf_policy.TFPolicy,
        *,
        networks: actor_critic_networks.Networks,
        dqda_clipping: float | None,
        clip_dqda_norm: bool = False,
        **kwargs: Any,
    ) -> None:
        """Keeps the networks.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded floating specs.
          policy: The policy to deploy and evaluate.
          collect_policy: The policy that explores.
          networks: The networks, as `actor_critic_networks.make_networks` makes them.
          dqda_clipping: See `losses.deterministic_policy_gradient`.
          clip_dqda_norm: See there `clip_norm`.
          **kwargs: Further arguments of `ActorCriticAgent`.

        Raises:
          ValueError: `dqda_clipping` is negative.
        """
        if dqda_clipping is not None:
            number_checks.check_number(
                "dqda_clipping", dqda_clipping, 0.0, remedy="None does not clip"
            )
        super().__init__(
            time_step_spec,
            action_spec,
            policy,
            collect_policy,
            actor_network=networks.actor[0],
            critic_networks=[networks.critic[0]],
            target_pairs=[networks.actor, networks.critic],
            embedding=networks.embedding,
            **kwargs,
        )
        self._target_actor_network = networks.actor[1]
        self._target_critic_network = networks.critic[1]
        self._dqda_clipping = dqda_clipping
        self._clip_dqda_norm = clip_dqda_norm

    def _compute_next_values(self, next_time_step: ts.TimeStep) -> Any:
        actions, _ = self._target_actor_network(
            next_time_step.observation, step_type=next_time_step.step_type
        )
        return self._values(self._target_critic_network, next_time_step, actions)

    def _compute_actor_loss(
        self, time_step: ts.TimeStep, training: bool
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        actions, _ = self._actor_network(
            time_step.observation, step_type=time_step.step_type, training=training
        )
        regularization = self._actor_network.losses
        with tf.GradientTape() as tape:
            tape.watch(actions)
            values = self._expected_values(time_step, actions)
            # A recurrent critic's later values depend on earlier actions.
            counted = tf.where(time_step.is_last(), 0.0, values)
        loss = losses.deterministic_policy_gradient(
            values,
            actions,
            tape.gradient(counted, actions),
            self._dqda_clipping,
            self._clip_dqda_norm,
        )
        return loss, regularization

    def _expected_values(self, time_step: ts.TimeStep, action: Any) -> tf.Tensor:
        """Returns the critic's expected values of embedded steps, `[B]` or `[B, T]`."""
        return self._values(self._critic_networks[0], time_step, action)
