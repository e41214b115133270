"""D4PG on Pendulum-v1.

For cartpole:balance of dm_control take configs/d4pg_cartpole.py.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("d4pg")
