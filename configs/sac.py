"""SAC on Pendulum-v1; configs/sac_*.py have the settings of other environments.

The settings were chosen on seeds from 100 up.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("sac")
