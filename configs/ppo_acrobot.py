"""PPO on Acrobot-v1, for 1,000,000 steps, with the settings of rl-zoo3."""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("ppo_acrobot")
