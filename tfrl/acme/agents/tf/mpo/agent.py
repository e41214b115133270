"""MPO, which acts and learns in an `EnvironmentLoop`."""

from tfrl.agents.mpo.agent import MPO as MPO
