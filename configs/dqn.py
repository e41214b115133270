"""Double DQN with 3-step returns on CartPole-v1.

`--config.agent=c51`, `qr_dqn`, `iqn`, `rainbow` or `r2d2` takes configs/c51.py and so
on.

The settings were chosen on seeds from 100 up. A poor policy balances the pole for about
300 steps, in which the cart drifts to the edge. The horizon of gamma has to be long
compared with that, or training settles for such a policy.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("dqn")
