"""PPO on Pendulum-v1, for 100,000 steps.

The settings are those that rl-zoo3 publishes, but with independent noise in each step.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("ppo_pendulum")
