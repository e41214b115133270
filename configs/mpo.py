"""MPO on Pendulum-v1."""

from ml_collections import ConfigDict

from configs import dmpo


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dmpo.get_config()
    config.agent = "mpo"
    return config
