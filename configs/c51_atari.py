"""C51 on an Atari game, for 50,000,000 steps of four frames.

The settings follow Bellemare et al., "A distributional perspective on reinforcement
learning" (2017, arXiv:1707.06887), and were compared with Dopamine's c51_icml.gin. No
run of these settings has been trained to its end here. For the rest, see
configs/dqn_atari.py.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("c51_atari")
