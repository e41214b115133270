"""PQN on Acrobot-v1, for 500,000 steps, with CleanRL's discount.

The optimizer and the learning rate are those of configs/pqn.py.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("pqn_acrobot")
