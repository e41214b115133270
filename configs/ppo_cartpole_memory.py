"""Recurrent PPO on CartPole-v1 without velocities, for 100,000 steps.

Actor and critic have an LSTM each, since one observation does not tell which way the
pole falls. A minibatch has whole sequences, two of 128 steps.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("ppo_cartpole_memory")
