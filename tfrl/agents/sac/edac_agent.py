"""EDAC and SAC-N: SAC with an ensemble of critics, for recorded experience.

The losses are SAC's (see `agents.sac.sac_agent`), with the minimum over all N critics
in the targets and in the actor's loss: the rarer an action is in the recordings, the
more the critics differ, and the lower is their minimum. That is SAC-N. EDAC needs fewer
critics, since it adds to the critics' loss

    eta / (N - 1) * sum_{i != j} <g_i, g_j>
    g_i = grad_a Q_i(s, a) / |grad_a Q_i(s, a)|

at the recorded actions, which are scaled to [-1, 1]. An et al., "Uncertainty-based
offline reinforcement learning with diversified Q-ensemble" (2021, arXiv:2110.01548),
algorithm 1.

>>> import keras
>>> from tfrl.agents import EdacAgent
>>> from tfrl.agents.sac import TanhNormalProjectionNetwork
>>> from tfrl.environments import native
>>> from tfrl.networks import ActorDistributionNetwork, CriticEnsembleNetwork
>>> environment = native.load("Pendulum-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = EdacAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     CriticEnsembleNetwork(specs, num_critics=10),
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

from typing import Any, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, critics, updates
from tfrl.agents.sac import sac_agent
from tfrl.compilation import accelerators
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import actions as actions_lib
from tfrl.utils import number_checks


class EdacAgent(sac_agent.SacAgent):
    """An EDAC agent; with `eta=0`, a SAC-N agent."""

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
        *,
        eta: float = 1.0,
        **settings: Unpack[sac_agent.SacSettings],
    ) -> None:
        """Builds the target network and the policies.

        Args:
          time_step_spec: See `SacAgent`.
          action_spec: See `SacAgent`.
          critic_network: A `CriticEnsembleNetwork` of at least two critics.
          actor_network: See `SacAgent`.
          actor_optimizer: See `SacAgent`.
          critic_optimizer: See `SacAgent`.
          alpha_optimizer: See `SacAgent`.
          eta: The weight of the similarity of the critics' gradients; 0 leaves it out.
          **settings: The optional arguments of `SacAgent`.

        Raises:
          ValueError: `eta` is negative, there is one critic, or an argument of
            `SacAgent` is wrong.
          NotImplementedError: The actor is recurrent, unless `eta` is 0, or there are
            n-step updates with a recurrent network.
        """
        number_checks.check_number("eta", eta, 0.0, remedy="1 is usual in EDAC")
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
        if len(self._critic_networks) > 1 or self._num_critics < 2:
            raise ValueError(
                f"critic_network: got {self._critic_networks[0].name!r}, expected one "
                "network of several critics; use a CriticEnsembleNetwork."
            )
        if eta:
            checks.check_not_recurrent(
                [self._actor_network],
                "EDAC",
                "use eta=0, which is SAC-N, or a network of several frames",
            )
        self._eta = eta

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns SAC's loss, and `eta` times the similarity of the gradients."""
        loss, details = super()._critic_loss(batch)
        if not self._eta:
            return loss, details
        similarity = losses.gradient_similarity(self._gradients(batch))
        return loss + self._eta * critics.mean(similarity, batch), details

    def _gradients(self, batch: updates.Batch) -> tf.Tensor:
        """Returns the gradients of each critic at the recorded actions, `[N, B, A]`."""
        data = batch.data
        (network,) = self._critic_networks
        time_step = self._embedding.trained(data.time_step, batch.training)
        observation, action = accelerators.map_moved(
            lambda x: tf.repeat(x[tf.newaxis], self._num_critics, axis=0),
            (time_step.observation, data.action),
        )
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(action)
            values, _ = network(
                (observation, action), training=batch.training, one_each=True
            )
        gradients = tape.gradient(values, action)
        _, magnitudes = actions_lib.spec_means_and_magnitudes(self.action_spec)
        scaled = [
            gradient * tf.cast(magnitude, gradient.dtype)
            for gradient, magnitude in zip(
                *map(tf.nest.flatten, (gradients, magnitudes)), strict=True
            )
        ]
        outer = tf.shape(values)
        flat = [tf.reshape(x, tf.concat([outer, [-1]], 0)) for x in scaled]
        return tf.concat(flat, axis=-1)
