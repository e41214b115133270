"""IMPALA on CartPole-v1, for 1,000,000 steps.

With --num_actors an update takes 16 sequences of any environments of the actors, which
are as many steps.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("impala")
