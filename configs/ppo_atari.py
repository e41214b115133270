"""PPO on an Atari game, for 10,000,000 steps of four frames.

It needs `pip install 'tfrl[atari]'`, or `'tfrl[envpool]'` for
`--config.emulator=envpool`, a faster emulator with other episodes for the same seed.
While it learns, a lost life ends an episode and rewards become their signs; evaluations
play whole games for all their points. The settings are those that rl-zoo3 publishes.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("ppo_atari")
