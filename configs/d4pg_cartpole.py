"""D4PG on dm_control's cartpole:balance, whose episodes have 1,000 steps."""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("d4pg_cartpole")
