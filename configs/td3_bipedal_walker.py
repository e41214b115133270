"""TD3 on BipedalWalker-v3, which needs `pip install 'tfrl[box2d]'`.

The settings are rl-zoo3's for 1,000,000 steps.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("td3_bipedal_walker")
