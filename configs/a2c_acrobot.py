"""A2C on Acrobot-v1, for 500,000 steps.

The settings are rl-zoo3's, but with Adam instead of RMSprop.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("a2c_acrobot")
