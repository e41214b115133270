"""PPO on MiniGrid-DoorKey-5x5-v0, and by --env on other grids of MiniGrid.

It needs `pip install 'tfrl[minigrid]'`. The settings are those that rl-zoo3 publishes
for 100,000 steps, with flat observations. Convolutions see the image alone:
`--config.grid_observations=image '--config.conv_layer_params=((16,2,1),(32,2,1))'`.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("ppo_minigrid")
