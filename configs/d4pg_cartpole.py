"""D4PG on dm_control's cartpole:balance, whose episodes have 1,000 steps."""

from ml_collections import ConfigDict

from configs import d4pg


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = d4pg.get_config()
    config.env = "dm_control/cartpole-balance"  # Rewards in [0, 1].
    config.gamma = 0.99  # Discount of a step.
    config.vmin = 0.0  # The least return.
    config.vmax = 100.0  # The greatest reward, 1, divided by 1 - gamma.
    config.eval_interval = 5_000  # Iterations between evaluations.
    return config
