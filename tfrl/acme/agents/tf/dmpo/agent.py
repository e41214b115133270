"""Distributional MPO as an agent of Acme, for an `EnvironmentLoop`."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from tfrl.acme.agents.tf.mpo import agent
from tfrl.agents.mpo import dmpo_agent
from tfrl.networks import network


class DistributionalMPO(agent.MPO):
    """A `DmpoAgent` with its own actor and replay, and with Acme's arguments."""

    _agent_class = dmpo_agent.DmpoAgent
    _checkpoint_name = "dmpo_learner"

    @override
    @staticmethod
    def _critic(given: Any) -> network.Network:
        return network.as_network(given)
