"""DroQ: SAC whose few critics have dropout, and many updates for each step.

The losses are SAC's (see `agents.sac.sac_agent`), with the minimum of all critics in
the targets and their mean in the actor's loss. The critics drop units in every pass of
an update: in their predictions, in the targets and in the actor's loss, so that two of
them stand for REDQ's ten. Hiraoka et al., "Dropout Q-functions for doubly efficient
reinforcement learning" (2022, arXiv:2110.02034), algorithm 2.

>>> import keras
>>> from tfrl.agents import DroqAgent
>>> from tfrl.agents.sac import TanhNormalProjectionNetwork
>>> from tfrl.environments import native
>>> from tfrl.networks import ActorDistributionNetwork, CriticEnsembleNetwork
>>> environment = native.load("Pendulum-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = DroqAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     CriticEnsembleNetwork(specs, num_critics=2, dropout=0.01, layer_norm=True),
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

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Unpack

import tensorflow as tf

from tfrl.agents import updates
from tfrl.agents.sac import sac_agent
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class DroqAgent(sac_agent.SacAgent):
    """A SAC agent with dropout in every pass through the critics.

    The target networks follow the weights and the statistics of layers; the random
    states of their dropout are their own. `initialize` copies them, so the masks of
    targets and predictions are the same in the first update, and differ in all others.
    """

    _drops_in_all_passes = True

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
        """Builds the target network and the policies.

        Args:
          time_step_spec: See `SacAgent`.
          action_spec: See `SacAgent`.
          critic_network: See `SacAgent`; a `CriticEnsembleNetwork` of two critics with
            `dropout=0.01` and `layer_norm=True`.
          actor_network: See `SacAgent`.
          actor_optimizer: See `SacAgent`.
          critic_optimizer: See `SacAgent`.
          alpha_optimizer: See `SacAgent`.
          **settings: The optional arguments of `SacAgent`. By default, `num_min` is 2,
            so that the actor's loss has the mean of the critics, and
            `actor_update_period` is 20, the number of updates for each step.

        Raises:
          ValueError: An argument of `SacAgent` is wrong.
          NotImplementedError: N-step updates with a recurrent network.
        """
        settings.setdefault("num_min", 2)
        settings.setdefault("actor_update_period", 20)
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

    def _get_target_updater(self, tau: Any = 1.0, period: Any = 1) -> Callable[[], Any]:
        """Returns the function that moves all of the targets but random states."""
        pairs: Any = [tuple(map(_without_states, pair)) for pair in self._target_pairs]
        return updates.make_updater(pairs, tau, period)


def _without_states(network: Any) -> Any:
    """Returns the network's variables of floats, which random states are not."""
    floats = [v for v in network.variables if tf.as_dtype(v.dtype).is_floating]
    return SimpleNamespace(variables=floats)
