"""DQN with goals in hindsight on 15 bits that it flips one by one.

The task is that of Andrychowicz et al., "Hindsight experience replay" (2017), section
3.1; the settings were chosen for it. Without hindsight, `--config.goals_per_step=0`,
DQN learns nothing here. `--env` takes any number of bits. An episode fails if its
return is minus that number.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("dqn_bit_flipping")
