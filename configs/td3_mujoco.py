"""TD3 on MuJoCo's Hopper-v5, and by --env on HalfCheetah-v5 and others of its kind.

It needs `pip install 'tfrl[mujoco]'`. The settings are rl-zoo3's for 1,000,000 steps.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("td3_mujoco")
