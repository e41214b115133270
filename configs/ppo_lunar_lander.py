"""PPO on LunarLander-v3, for 1,000,000 steps.

It needs `pip install 'tfrl[box2d]'`. The settings are those that rl-zoo3 publishes.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("ppo_lunar_lander")
