"""CrossQ: SAC without target networks, with batch-normalized critics.

With actions a' ~ pi(.|s') drawn from the current policy, one pass through the critics
of both halves [(s, a); (s', a')] together gives Q_i(s, a) and Q_i(s', a'), normalized
by the same statistics. The critics minimise

    sum_i L(y - Q_i(s, a)) with y = r + gamma * d * (min_i Q_i(s', a')
                                                   - alpha * log pi(a'|s'))

where y has no gradient and d is the environment's discount. The actor and the
temperature minimise SAC's losses at every `actor_update_period`-th train step, with the
critics' running statistics. Bhatt et al., "CrossQ: batch normalization in deep
reinforcement learning for greater sample efficiency and simplicity" (2024,
arXiv:1902.05605), figure 2 and section 3.

The critics and the actor are normalized:

>>> import keras
>>> from tfrl.agents import CrossQAgent
>>> from tfrl.agents.sac import TanhNormalProjectionNetwork
>>> from tfrl.environments import native
>>> from tfrl.networks import ActorDistributionNetwork, CriticEnsembleNetwork
>>> from tfrl.networks.layers.bodies import batch_renormed
>>> environment = native.load("Pendulum-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = CrossQAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     CriticEnsembleNetwork(specs, num_critics=2, body=batch_renormed),
...     ActorDistributionNetwork(
...         *specs,
...         body=batch_renormed,
...         continuous_projection_net=TanhNormalProjectionNetwork,
...     ),
...     actor_optimizer=keras.optimizers.Adam(1e-3, beta_1=0.5),
...     critic_optimizer=keras.optimizers.Adam(1e-3, beta_1=0.5),
...     alpha_optimizer=keras.optimizers.Adam(1e-3),
...     gamma=0.99,
... )
>>> agent.train_sequence_length
2
"""

from __future__ import annotations

from typing import Any, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, critics, updates
from tfrl.agents.sac import sac_agent
from tfrl.keras_layers import batch_renorm
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils.random_numbers import seeds

_WITHOUT_TARGETS = (
    "target_critic_network",
    "target_critic_network_2",
    "target_update_tau",
    "target_update_period",
    "observation_network",
)


class CrossQAgent(sac_agent.SacAgent):
    """A SAC agent without target networks.

    The statistics of `BatchRenorm` layers change in the critics' update, by the joint
    pass alone, and in the actor's. Masked transitions, and those with the weight 0, do
    not count in them. Everything else, such as the policies and the temperature's loss,
    uses running statistics.
    """

    _has_target_critics = False
    _takes_bins = False

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        critic_network: types.Network | types.Layer,
        actor_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        alpha_optimizer: types.Optimizer | None,
        **settings: Unpack[sac_agent.SacSettings],
    ) -> None:
        """Builds the second critic and the policies.

        Args:
          time_step_spec: See `SacAgent`.
          action_spec: See `SacAgent`.
          critic_network: See `SacAgent`; its hidden layers should be normalized, such
            as those of a `CriticEnsembleNetwork` with
            `body=networks.layers.bodies.batch_renormed`.
          actor_network: See `SacAgent`.
          actor_optimizer: See `SacAgent`.
          critic_optimizer: See `SacAgent`.
          alpha_optimizer: See `SacAgent`.
          **settings: The optional arguments of `SacAgent`, without those of target
            networks and `observation_network`; `actor_update_period` is 3 by default.

        Raises:
          ValueError: A setting is for target networks, or an argument of `SacAgent` is
            wrong.
          NotImplementedError: A network is recurrent.
        """
        for name in _WITHOUT_TARGETS:
            value = settings.get(name)
            if value is not None:
                raise ValueError(
                    f"{name}: got {value}, expected None, since CrossQ has no "
                    "target networks; leave it out."
                )
        settings.setdefault("actor_update_period", 3)
        settings["target_update_period"] = None
        super().__init__(
            time_step_spec,
            action_spec,
            critic_network,
            actor_network,
            actor_optimizer,
            critic_optimizer,
            alpha_optimizer,
            **settings,
        )
        checks.check_not_recurrent(
            [self._actor_network, *self._critic_networks],
            "CrossQ",
            "use SacAgent, or a network of several frames",
        )

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `sum_i L(y - Q_i(s, a))`, and its details."""
        data = batch.data
        seed, subset_seed = seeds.split_seed(batch.seed, 2)
        next_actions, log_prob = self._draw(data.next_time_step, seed)
        steps, actions = _joined(
            (data.time_step, data.action), (data.next_time_step, next_actions)
        )
        with batch_renorm.counted(tf.tile(critics.counted(batch), [2])):
            both = [
                critics.values(network, steps, actions, batch.training)
                for network in self._critic_networks
            ]
        halves = [tf.split(values, 2, axis=-1) for values in both]
        next_values = [after for _, after in halves]
        stacked = tf.stack(next_values) if len(halves) > 1 else next_values[0]
        smallest = self._smallest(stacked, subset_seed)
        targets = data.targets(
            losses.soft_value(smallest, log_prob, self._temperature.value())
        )
        predictions = iter([now for now, _ in halves])
        return self._regress(batch, targets, values_of=lambda *_: next(predictions))

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns SAC's loss; the actor's statistics change in training."""
        with batch_renorm.counted(critics.counted(batch)):
            return super()._actor_loss(batch)

    def _alpha_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns SAC's loss for the policy that acts, by running statistics."""
        return super()._alpha_loss(batch._replace(training=False))


def _joined(first: Any, second: Any) -> Any:
    """Returns two nests of examples `[B, ...]` as one, `[2 B, ...]`."""
    return tf.nest.map_structure(lambda *x: tf.concat(x, axis=0), first, second)
