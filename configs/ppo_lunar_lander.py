"""PPO on LunarLander-v3, for 1,000,000 steps.

It needs `pip install 'tfrl[box2d]'`. The settings are those that rl-zoo3 publishes.
"""

from ml_collections import ConfigDict

from configs import ppo


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ppo.get_config()
    config.env = "LunarLander-v3"
    config.num_envs = 16
    config.num_iterations = 61
    config.collect_steps_per_iteration = 1024
    config.num_epochs = 4
    config.minibatch_size = 64
    config.learning_rate = 3e-4
    config.anneal_learning_rate = False
    config.anneal_clip_range = False
    config.gamma = 0.999
    config.gae_lambda = 0.98
    config.entropy_regularization = 0.01
    config.eval_interval = 6
    config.log_interval = 1
    config.checkpoint_interval = 10
    return config
