"""TD3 on Pendulum-v1, with DDPG by --config.agent=ddpg.

For MountainCarContinuous-v0 take configs/td3_mountain_car.py.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("td3")
