"""TQC with goals in hindsight on FetchReach-v4, with the settings of rl-zoo3.

Rewards are not normalized. The environment needs the extra `robotics`.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("sac_fetch_reach")
