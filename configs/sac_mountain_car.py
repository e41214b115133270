"""SAC on MountainCarContinuous-v0, with Ornstein-Uhlenbeck noise on its actions.

Without correlated noise the car rarely reaches the flag at first, and training settles
for standing still.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("sac_mountain_car")
