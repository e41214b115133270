"""DQN on pictures, for 10,000,000 steps.

The settings are rl-zoo3's for Atari's games, with a replay buffer of 10,000 frames: of
96 x 96 pixels in three colours they take 0.3 GB. `tfrl.DQN` takes these settings for
every environment with pictures that has no others; configs/dqn_atari.py is for Atari's
games.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("dqn_pixels")
