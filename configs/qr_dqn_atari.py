"""QR-DQN on an Atari game, for 50,000,000 steps of four frames.

The settings follow Dabney et al., "Distributional reinforcement learning with quantile
regression" (2018, arXiv:1710.10044). What the paper leaves open is as for C51
(configs/c51_atari.py). No run of these settings has been trained to its end here. For
the rest, see configs/dqn_atari.py.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("qr_dqn_atari")
