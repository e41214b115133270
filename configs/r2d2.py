"""R2D2 on CartPole-v1 without velocities.

Kapturowski et al., "Recurrent experience replay in distributed reinforcement learning"
(2019). The observations are the positions of cart and pole, so the network has to
remember the ones before.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("r2d2")
