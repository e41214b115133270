"""DMPO on Pendulum-v1, with MPO by --config.agent=mpo.

The settings of MPO alone are in configs/mpo.py. Both were chosen on seeds from 100 up.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("dmpo")
