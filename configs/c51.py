"""C51 on CartPole-v1, with the settings of CleanRL.

The initial weights are others, and probabilities in the loss are not clipped;
configs/c51_mountain_car.py has CleanRL's.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("c51")
