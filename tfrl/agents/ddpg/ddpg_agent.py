"""Deep deterministic policy gradient (DDPG).

For a transition (s, a, r, s') the critic Q minimises L(y - Q(s, a)) with the target

    y = r + gamma * d * Q_target(s', mu_target(s'))

where d is the environment's discount: 0 at a termination, 1 at a time limit. The actor
mu minimises -Q(s, mu(s)), whose gradient is

    -dQ(s, a)/da dmu(s)/dtheta    at a = mu(s).

The actions that are collected have Ornstein-Uhlenbeck noise. Lillicrap et al.,
"Continuous control with deep reinforcement learning" (2016, arXiv:1509.02971),
algorithm 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.agents import (
    actor_critic,
    actor_critic_networks,
    checks,
    critics,
    options,
    updates,
)
from tfrl.policies import ou_noise_policy
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer


class DdpgInfo(NamedTuple):
    """Details of the loss.

    Attributes:
      actor_loss: The mean of -Q(s, mu(s)), a scalar.
      critic_loss: The mean loss of the critic, a scalar.
      td_loss: The critic's loss of each example before weighting, `[B]`, zero where
        masked. For recurrent networks, it is summed over time.
      td_error: Target minus prediction, `[B]` (`[B, T-1]` for recurrent networks).
    """

    actor_loss: tf.Tensor
    critic_loss: tf.Tensor
    td_loss: Any = ()
    td_error: Any = ()


class DdpgAgent(actor_critic.LossesOfParts):
    """A DDPG agent.

    `train` updates the critic first, so the actor learns from the new critic, and
    returns each loss as it was before its own update.
    """

    _info = DdpgInfo

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        actor_network: types.Network | types.Layer,
        critic_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None = None,
        critic_optimizer: types.Optimizer | None = None,
        ou_stddev: float = 1.0,
        ou_damping: float = 1.0,
        target_actor_network: types.Network | types.Layer | None = None,
        target_critic_network: types.Network | types.Layer | None = None,
        target_update_tau: float = 1.0,
        target_update_period: int | None = 1,
        dqda_clipping: float | None = None,
        td_errors_loss_fn: types.LossFn | None = None,
        gamma: float = 1.0,
        reward_scale_factor: float = 1.0,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        *,
        n_step_update: int = 1,
        noise_scaled_to_spec: bool = False,
        reset_noise_at_episode_start: bool = False,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
        observation_network: types.Network | types.Layer | None = None,
    ) -> None:
        """Builds the target networks and the policies.

        The defaults are TF-Agents': targets that are copied after each update
        (a `target_update_tau` of 0.005 is usual), no discounting, and white noise of
        standard deviation 1 (the paper has `ou_stddev=0.2, ou_damping=0.15`).

        `TdOptions` and `AgentOptions` explain the arguments that are not listed here.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded float specs.
          actor_network: A `Network` (or Keras layer) that maps observations to actions,
            such as an `ActorNetwork`.
          critic_network: A `Network` (or Keras layer) that maps pairs of observations
            and actions to values `[B]`, such as a `CriticNetwork`.
          actor_optimizer: The optimizer of the actor; None for an agent that never
            trains.
          critic_optimizer: The optimizer of the critic; None for an agent that never
            trains.
          ou_stddev: The standard deviation of each step of the noise.
          ou_damping: The rate, in [0, 1], at which the noise returns to zero; 1 gives
            noise without correlation in time.
          target_actor_network: The target of the actor; a new copy if None.
          target_critic_network: The target of the critic; a new copy if None.
          dqda_clipping: The largest absolute value of each element of dQ/da; None does
            not clip.
          noise_scaled_to_spec: Whether the noise is in units of half the range of each
            action, not in the action's own units.
          reset_noise_at_episode_start: Whether the noise starts from zero in each
            episode, as in the paper.
          observation_network: A `Network` (or Keras layer) without state, such as a
            network for images. The actor and the critic get its output instead of the
            observations. The critic's loss trains it; the actor is trained, and acts,
            with the output of its target. None for no such network.

        Raises:
          ValueError: An action is discrete or has no bounds, a number is out of range,
            or a network does not fit the specs.
          NotImplementedError: `n_step_update` is not 1 for recurrent networks.
        """
        td = options.TdOptions(
            target_update_tau=target_update_tau,
            target_update_period=target_update_period,
            td_errors_loss_fn=td_errors_loss_fn,
            gamma=gamma,
            reward_scale_factor=reward_scale_factor,
            gradient_clipping=gradient_clipping,
            n_step_update=n_step_update,
        )
        common = options.AgentOptions(
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            seed=seed,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
        )
        options.warn_of_growing_values(type(self), td)
        time_step_spec = checks.as_time_step_spec(time_step_spec, "DDPG")
        action_spec = checks.as_continuous_action_spec(action_spec, "DDPG")
        checks.check_dqda_clipping(dqda_clipping)
        networks = actor_critic_networks.make_networks(
            time_step_spec,
            action_spec,
            actor_network,
            [critic_network, target_critic_network],
            target_actor_network=target_actor_network,
            observation_network=observation_network,
            normalizer=observation_normalizer,
        )
        super().__init__(
            time_step_spec,
            action_spec,
            networks.policy(time_step_spec, action_spec, seed=seed),
            ou_noise_policy.OUNoisePolicy(
                networks.policy(time_step_spec, action_spec, clip=False, seed=seed),
                ou_stddev=ou_stddev,
                ou_damping=ou_damping,
                seed=seed,
                scaled_to_spec=noise_scaled_to_spec,
                reset_at_episode_start=reset_noise_at_episode_start,
            ),
            networks,
            td,
            common,
        )
        self._dqda_clipping = dqda_clipping
        self._parts = [
            self._critic_part(self._critic_loss, critic_optimizer),
            self._actor_part(self._actor_loss, actor_optimizer),
        ]

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `L(y - Q(s, a))`, and its details.

        Here `y = r + gamma d Q_target(s', mu_target(s'))`.
        """
        reached = self._embedding.target(batch.data.next_time_step)
        actions = critics.outputs(self._target_actor_network, reached)
        (target,) = self._target_critic_networks
        targets = batch.data.targets(critics.values(target, reached, actions))
        return self._regress(batch, targets)

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `-Q(s, mu(s))`, with the gradient `-dQ/da dmu/dtheta`."""
        time_step = self._embedding.target(batch.data.time_step)
        (critic,) = self._critic_networks
        loss = critics.policy_gradient_loss(
            critics.outputs(self._actor_network, time_step, batch.training),
            lambda actions: critics.values(critic, time_step, actions),
            time_step.is_last(),
            self._dqda_clipping,
        )
        return critics.mean(loss, batch, self._actor_network), {}
