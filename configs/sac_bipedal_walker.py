"""SAC on BipedalWalker-v3, which needs `pip install 'tfrl[box2d]'`.

The settings are rl-zoo3's for 500,000 steps: 64 updates follow 64 steps, in
which state-dependent noise (gSDE) keeps its matrix.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("sac_bipedal_walker")
