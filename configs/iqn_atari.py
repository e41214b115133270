"""IQN on an Atari game, for 50,000,000 steps of four frames.

The settings follow Dabney et al., "Implicit quantile networks for distributional
reinforcement learning" (2018, arXiv:1806.06923), and were compared with Dopamine's
implicit_quantile_icml.gin. No run of these settings has been trained to its end here.
For the rest, see configs/dqn_atari.py.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("iqn_atari")
