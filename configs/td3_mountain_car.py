"""DDPG on MountainCarContinuous-v0, whose correlated noise reaches the flag.

TD3's noise has no correlation in time, so the car rarely leaves the valley by it.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("td3_mountain_car")
