"""SAC or TQC on LunarLanderContinuous-v3, for 300,000 steps.

It needs `pip install 'tfrl[box2d]'`. The settings are rl-zoo3's for 500,000 steps, but
at a constant learning rate.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("sac_lunar_lander")
