"""Distributed distributional deterministic policy gradients (D4PG).

The critic predicts the distribution Z(s, a) of the return over fixed atoms. For a
transition over n steps it minimises the cross entropy between Z(s_0, a_0) and the
projection onto the atoms of

    r_0 + gamma d_0 r_1 + ... + gamma^n d_0 ... d_(n-1) Z_target(s_n, mu_target(s_n))

where d is the environment's discount: 0 at a termination, 1 at a time limit. The actor
mu follows the gradient of the mean,

    -dE[Z(s, a)]/da dmu(s)/dtheta    at a = mu(s).

The actions that are collected have Gaussian noise. Barth-Maron et al., "Distributed
distributional deterministic policy gradients" (2018, arXiv:1804.08617), algorithm 1.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl import networks
>>> from tfrl.agents.ddpg import D4pgAgent
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([3], tf.float32)
>>> action_spec = BoundedTensorSpec([1], tf.float32, -2, 2)
>>> critic_network = networks.Sequential(
...     [
...         networks.CriticMultiplexer(),
...         networks.LayerNormMLP([64, 64], activate_final=True),
...         networks.DiscreteValuedHead(vmin=-1600.0, vmax=0.0, num_atoms=51),
...     ]
... )
>>> agent = D4pgAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     networks.ActorNetwork(observation_spec, action_spec, (64, 64)),
...     critic_network,
...     actor_optimizer=keras.optimizers.Adam(1e-3),
...     critic_optimizer=keras.optimizers.Adam(1e-3),
... )
>>> agent.initialize()
>>> agent.train_sequence_length
6
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import tensorflow as tf

from tfrl.agents import (
    actor_critic,
    actor_critic_networks,
    checks,
    critics,
    options,
    updates,
)
from tfrl.policies import gaussian_policy
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils.optimization import optimizers


class D4pgInfo(NamedTuple):
    """Details of the loss.

    Attributes:
      actor_loss: The mean of -E[Z(s, mu(s))], a scalar.
      critic_loss: The mean cross entropy of the critic, a scalar.
      td_loss: The cross entropy of each example before weighting, `[B]`, zero where
        masked.
      td_error: The target's mean minus the prediction's, `[B]`; the target is not
        projected onto the atoms.
    """

    actor_loss: tf.Tensor
    critic_loss: tf.Tensor
    td_loss: Any = ()
    td_error: Any = ()


class D4pgAgent(actor_critic.DistributionalCritics, actor_critic.LossesOfParts):
    """A D4PG agent. It is a learner only: any loop or process can collect for it.

    `train` updates the critic first, so the actor learns from the new critic, and
    returns each loss as it was before its own update. As in the paper, the actor is
    trained at the observations `s_0` at which transitions begin; Acme's agent takes
    `s_n`.
    """

    _info = D4pgInfo
    _clip_to = staticmethod(optimizers.all_to_norm)

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        actor_network: types.Network | types.Layer,
        critic_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None = None,
        critic_optimizer: types.Optimizer | None = None,
        sigma: types.FloatOrSchedule = 0.3,
        *,
        observation_network: types.Network | types.Layer | None = None,
        target_actor_network: types.Network | types.Layer | None = None,
        target_critic_network: types.Network | types.Layer | None = None,
        dqda_clipping: float | None = 1.0,
        noise_scaled_to_spec: bool = False,
        **settings: Unpack[options.Settings],
    ) -> None:
        """Builds the target networks and the policies.

        The defaults are Acme's: targets that are copied after every 100 updates,
        and returns over 5 steps.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded float specs.
          actor_network: A `Network` (or Keras layer) that maps observations to actions
            inside the bounds, such as an `ActorNetwork`.
          critic_network: A `Network` (or Keras layer) that maps pairs of observations
            and actions to a `DiscreteValuedDistribution`, such as a `Sequential` of
            `CriticMultiplexer`, `LayerNormMLP` and `DiscreteValuedHead`. Its atoms
            should span all discounted returns.
          actor_optimizer: The optimizer of the actor; None for an agent that never
            trains.
          critic_optimizer: The optimizer of the critic; None for an agent that never
            trains.
          sigma: The standard deviation of the noise on collected actions; see the
            `scale` of `GaussianPolicy`. A Keras schedule follows the train step
            counter.
          observation_network: See `DdpgAgent`.
          target_actor_network: The target of the actor; a new copy if None.
          target_critic_network: The target of the critic; a new copy if None.
          dqda_clipping: The largest L2 norm of dE[Z]/da, for each action tensor of each
            example; None does not clip.
          noise_scaled_to_spec: Whether the noise is in units of half the range of each
            action, not in the action's own units.
          **settings: See `TdOptions` and `AgentOptions`. The defaults are
            `target_update_period=100`, `gamma=0.99`, `n_step_update=5` and
            `gradient_clipping=40.0`, the largest norm of all gradients of the actor
            together, and of all gradients of the critic. There is no
            `td_errors_loss_fn`.

        Raises:
          ValueError: An action is discrete or has no bounds, a number is out of range,
            or a network does not fit the specs.
          NotImplementedError: A network is recurrent.
        """
        counter = checks.as_train_step_counter(settings.get("train_step_counter"))
        td, common = options.from_settings(
            type(self),
            {**settings, "train_step_counter": counter},
            target_update_period=100,
            gamma=0.99,
            n_step_update=5,
            gradient_clipping=40.0,
        )
        checks.check_no_td_loss(td.td_errors_loss_fn, "D4PG", "the cross entropy")
        checks.check_dqda_clipping(dqda_clipping)
        time_step_spec = checks.as_time_step_spec(time_step_spec, "D4PG")
        action_spec = checks.as_continuous_action_spec(action_spec, "D4PG")
        networks = actor_critic_networks.make_networks(
            time_step_spec,
            action_spec,
            actor_network,
            [critic_network, target_critic_network],
            target_actor_network=target_actor_network,
            observation_network=observation_network,
            normalizer=common.observation_normalizer,
        )
        checks.check_not_recurrent([networks.actor, networks.critics[0][0]], "D4PG")
        super().__init__(
            time_step_spec,
            action_spec,
            networks.policy(time_step_spec, action_spec, seed=common.seed),
            gaussian_policy.GaussianPolicy(
                networks.policy(
                    time_step_spec, action_spec, clip=False, seed=common.seed
                ),
                scale=sigma,
                step=counter,
                seed=common.seed,
                scaled_to_spec=noise_scaled_to_spec,
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
        """Returns the mean cross entropy of `Z(s_0, a_0)`, and its details.

        The target is `r + gamma d Z_target(s_n, mu_target(s_n))`, with n-step returns.
        """
        reached = self._embedding.target(batch.data.next_time_step)
        actions = critics.outputs(self._target_actor_network, reached)
        (target,) = self._target_critic_networks
        next_values = critics.values(target, reached, actions)
        return self._regress_distributions(batch, next_values)

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `-E[Z(s, mu(s))]`, with its gradient through `mu`."""
        time_step = self._embedding.target(batch.data.time_step)
        (critic,) = self._critic_networks
        loss = critics.policy_gradient_loss(
            critics.outputs(self._actor_network, time_step, batch.training),
            lambda actions: critics.values(critic, time_step, actions).mean(),
            time_step.is_last(),
            self._dqda_clipping,
            clip_norm=True,
        )
        return critics.mean(loss, batch, self._actor_network), {}
