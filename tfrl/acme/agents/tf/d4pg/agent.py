"""D4PG, which acts and learns in an `EnvironmentLoop`."""

from tfrl.agents.d4pg.agent import D4PG as D4PG
