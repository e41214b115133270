"""Rainbow on an Atari game, for 50,000,000 steps of four frames.

The settings follow Hessel et al., "Rainbow: Combining improvements in deep
reinforcement learning" (2018, arXiv:1710.02298). The numbers of steps, atoms and
frames, the rates and the periods were compared with Dopamine's rainbow_aaai.gin, which
follows the paper, too, and are the same; Dopamine has no noisy, dueling or double
networks. No run of these settings has been trained to its end here. For the rest, see
configs/dqn_atari.py.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("rainbow_atari")
