"""PPO on MiniGrid-DoorKey-5x5-v0, and by --env on other grids of MiniGrid.

It needs `pip install 'tfrl[minigrid]'`. The settings are those that rl-zoo3 publishes
for 100,000 steps, with flat observations. Convolutions see the image alone:
`--config.grid_observations=image --config.conv_layer_params=((16,2,1),(32,2,1))`.
"""

from ml_collections import ConfigDict

from configs import ppo


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ppo.get_config()
    config.env = "MiniGrid-DoorKey-5x5-v0"
    config.grid_observations = "flat"  # Or image, without the text.
    config.num_epochs = 10
    config.minibatch_size = 64
    config.normalize_observations = True
    config.normalize_rewards = True
    config.learning_rate = 2.5e-4
    config.anneal_learning_rate = False
    config.anneal_clip_range = False
    return config
