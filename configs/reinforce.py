"""REINFORCE on CartPole-v0: one hidden layer, two episodes per update."""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("reinforce")
