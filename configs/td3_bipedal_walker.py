"""TD3 on BipedalWalker-v3, which needs `pip install 'tfrl[box2d]'`.

The settings are rl-zoo3's for 1,000,000 steps.
"""

from ml_collections import ConfigDict

from configs import td3


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = td3.get_config()
    config.env = "BipedalWalker-v3"
    config.num_iterations = 990_000
    config.initial_collect_steps = 10_000
    config.fc_layer_params = (400, 300)
    config.batch_size = 256
    config.eval_interval = 5_000
    config.log_interval = 1_000
    config.checkpoint_interval = 50_000
    return config
