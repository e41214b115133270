"""PQN on CartPole-v1, for 500,000 steps.

The settings are CleanRL's, but with Adam instead of RAdam, and with a larger learning
rate and a discount nearer to 1; configs/dqn.py says why. These two were chosen on seeds
from 100 up.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("pqn")
