"""C51 on MountainCar-v0, with the settings of CleanRL."""

from ml_collections import ConfigDict

from configs import c51


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = c51.get_config()
    config.env = "MountainCar-v0"
    return config
