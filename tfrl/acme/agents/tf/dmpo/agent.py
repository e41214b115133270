"""Distributional MPO, which acts and learns in an `EnvironmentLoop`."""

from tfrl.agents.dmpo.agent import DistributionalMPO as DistributionalMPO
