"""SAC on MuJoCo's Hopper-v5, and by --env on HalfCheetah-v5 and others of its kind.

It needs `pip install 'tfrl[mujoco]'`. The settings are those of Haarnoja et al.,
"Soft actor-critic algorithms and applications" (2018), for 1,000,000 steps, of which
the first 10,000 are random as in rl-zoo3.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("sac_mujoco")
