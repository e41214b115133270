"""PQN on Acrobot-v1, for 500,000 steps, with CleanRL's discount."""

from ml_collections import ConfigDict

from configs import pqn


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = pqn.get_config()
    config.env = "Acrobot-v1"
    config.gamma = 0.99
    return config
