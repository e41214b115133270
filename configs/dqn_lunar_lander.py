"""DQN on LunarLander-v3, with the settings of rl-zoo3; it needs 'tfrl[box2d]'."""

from ml_collections import ConfigDict

from configs import dqn_acrobot


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn_acrobot.get_config()
    config.env = "LunarLander-v3"
    return config
