"""SAC on MountainCarContinuous-v0, with state-dependent noise (gSDE) on its actions.

The settings are rl-zoo3's, after 100 random steps; configs/sac_mountain_car.py has
other noise.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("sac_mountain_car_gsde")
