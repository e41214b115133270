"""Recurrent PPO on Pendulum-v1 without the velocity, for 100,000 steps.

A minibatch is one sequence of 64 steps.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("ppo_pendulum_memory")
