"""DQN on an Atari game, for 50,000,000 steps of four frames.

The settings are from Mnih et al., "Human-level control through deep reinforcement
learning" (2015), except for the optimizer: Adam, at the rate and epsilon that CleanRL
and rl-zoo3 have for it, instead of RMSProp. The replay buffer of a million frames takes
7 GB, since it stores each frame once.

It needs `pip install 'tfrl[atari]'`, or `'tfrl[envpool]'` for
`--config.emulator=envpool`, a faster emulator with other episodes for the same seed.
While it learns, a lost life ends an episode and rewards become their signs; evaluations
play whole games for all their points.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("dqn_atari")
