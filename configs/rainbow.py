"""Rainbow on CartPole-v1: C51 with all its parts.

The parts are double Q-learning, a dueling network, noisy layers instead of epsilon, 3
steps in a return, and prioritized replay. Hessel et al., "Rainbow: Combining
improvements in deep reinforcement learning" (2018, arXiv:1710.02298).
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("rainbow")
