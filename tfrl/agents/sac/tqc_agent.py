"""Truncated Quantile Critics: SAC with a distribution of returns.

Each of N critics predicts M quantiles of the return. With z_1 <= z_2 <= ... the sorted
mixture of all target critics' quantiles at (s', a'), a' ~ pi, and d dropped quantiles
per critic, each critic minimises the quantile Huber loss of its quantiles at (s, a) and

    y_j = r + gamma * d * (z_j - alpha * log pi(a'|s')),    j = 1 ... N (M - d)

The actor minimises alpha * log pi(a|s) minus the mean of all N M quantiles. Kuznetsov
et al., "Controlling overestimation bias with truncated mixture of continuous
distributional quantile critics" (2020, arXiv:2005.04269), equations 8 to 12.

The critics are one network of quantiles:

>>> import keras
>>> from tfrl.agents import TqcAgent
>>> from tfrl.agents.sac import TanhNormalProjectionNetwork
>>> from tfrl.environments import native
>>> from tfrl.networks import ActorDistributionNetwork, CriticEnsembleNetwork
>>> environment = native.load("Pendulum-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = TqcAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     CriticEnsembleNetwork(specs, num_critics=5, num_quantiles=25),
...     ActorDistributionNetwork(
...         *specs, continuous_projection_net=TanhNormalProjectionNetwork
...     ),
...     actor_optimizer=keras.optimizers.Adam(3e-4),
...     critic_optimizer=keras.optimizers.Adam(3e-4),
...     alpha_optimizer=keras.optimizers.Adam(3e-4),
...     gamma=0.99,
...     target_update_tau=0.005,
... )
>>> agent.train_sequence_length
2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, critics, updates
from tfrl.agents.sac import sac_agent
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks


class TqcAgent(sac_agent.SacAgent):
    """A SAC agent with critics of quantiles; targets drop the largest quantiles."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        critic_network: types.Network | types.Layer,
        actor_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        alpha_optimizer: types.Optimizer | None,
        *,
        num_dropped_quantiles: int = 2,
        **settings: Unpack[sac_agent.SacSettings],
    ) -> None:
        """Builds the target network and the policies.

        Args:
          time_step_spec: See `SacAgent`.
          action_spec: See `SacAgent`.
          critic_network: A `Network` that maps pairs of observations and actions to
            quantiles `[B, N, M]`, such as a `CriticEnsembleNetwork` of 5 critics with
            25 quantiles.
          actor_network: See `SacAgent`.
          actor_optimizer: See `SacAgent`.
          critic_optimizer: See `SacAgent`.
          alpha_optimizer: See `SacAgent`.
          num_dropped_quantiles: The number of quantiles to drop for each critic; more
            dropped quantiles give lower targets.
          **settings: The optional arguments of `SacAgent`.

        Raises:
          ValueError: The critic's output is not `[B, N, M]`, no quantile is left, or
            an argument of `SacAgent` has no meaning here.
          NotImplementedError: The actor is recurrent.
        """
        checks.check_no_td_loss(
            settings.get("td_errors_loss_fn"), "TQC", "the quantile Huber loss"
        )
        if settings.get("num_min") is not None:
            raise ValueError(
                "num_min: expected None, since TQC has a truncated mixture instead, "
                f"got {settings['num_min']}; leave it out."
            )
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
            [self._actor_network], "TQC", "use SacAgent, or a network of several frames"
        )
        number_checks.check_integer(
            "num_dropped_quantiles",
            num_dropped_quantiles,
            0,
            remedy="2 of 25 is usual, and 0 drops none",
        )
        _, num_quantiles = self._critic_networks[0].create_variables().shape
        if num_dropped_quantiles >= num_quantiles:
            raise ValueError(
                f"num_dropped_quantiles: expected less than {num_quantiles}, the "
                f"num_quantiles of each critic, got {num_dropped_quantiles}; drop "
                "fewer, or raise num_quantiles."
            )
        self._num_dropped = num_dropped_quantiles

    def _check_critic(self, critic: Any) -> None:
        spec = critic.create_variables()
        if not (isinstance(spec, tf.TensorSpec) and spec.shape.rank == 2):
            raise ValueError(
                f"critic network {critic.name!r}: expected quantiles of several "
                f"critics, shape [B, N, M], got {spec}; use a CriticEnsembleNetwork "
                "with num_quantiles."
            )

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the quantile Huber losses of all critics, and the details."""
        return self._regress(batch, self._targets(batch), _errors)

    def _targets(self, batch: updates.Batch) -> tf.Tensor:
        """Returns `y_j = r + gamma d (z_j - alpha log pi(a'|s'))`, `[B, N (M - d)]`."""
        reached = self._embedding.target(batch.data.next_time_step)
        action, log_prob = self._draw(reached, batch.seed)
        (target,) = self._target_critic_networks
        mixture = losses.truncated_mixture(
            critics.values(target, reached, action), self._num_dropped
        )
        samples = mixture - self._temperature.value() * log_prob[:, tf.newaxis]
        ones = tf.ones_like(samples)
        return losses.td_target(
            batch.data.reward[:, tf.newaxis] * ones,
            batch.data.discount[:, tf.newaxis] * ones,
            samples,
        )

    def _values_of_all(
        self,
        networks: Sequence[Any],
        time_step: ts.TimeStep,
        action: Any,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the mean of all quantiles, `[1, B]`."""
        (network,) = networks
        quantiles = critics.values(network, time_step, action, training)
        return tf.reduce_mean(quantiles, axis=[0, 2])[tf.newaxis]


def _errors(targets: tf.Tensor, predictions: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the loss and the error of each transition, means over the quantiles."""
    td_loss = tf.reduce_mean(losses.quantile_huber_loss(predictions, targets), axis=-1)
    td_error = tf.reduce_mean(targets, axis=-1) - tf.reduce_mean(predictions, axis=-1)
    return td_loss, td_error
