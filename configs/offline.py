"""IQL, CQL or behavioural cloning on recorded episodes of Pendulum-v1.

The settings were chosen on seeds from 100 up, of the data too.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("offline")
