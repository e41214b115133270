"""DQN on Acrobot-v1, with the settings of rl-zoo3.

The first update comes after 128 random steps, and not after 4.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("dqn_acrobot")
