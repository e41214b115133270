"""Distributional MPO as an agent of Acme, for an `EnvironmentLoop`."""

from __future__ import annotations

from tfrl.acme.agents.tf.mpo import agent
from tfrl.agents.dmpo import dmpo_agent


class DistributionalMPO(agent.MPO):
    """A `DmpoAgent` with its own actor and replay, and with Acme's arguments."""

    _agent_class = dmpo_agent.DmpoAgent
    _checkpoint_name = "dmpo_learner"
