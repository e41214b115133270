"""PPO on Acrobot-v1, for 500,000 steps.

The settings are those that rl-zoo3 publishes for 1,000,000.
"""

from ml_collections import ConfigDict

from configs import ppo


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ppo.get_config()
    config.env = "Acrobot-v1"
    config.num_envs = 16
    config.num_iterations = 122
    config.collect_steps_per_iteration = 256
    config.num_epochs = 4
    config.minibatch_size = 64
    config.normalize_observations = True
    config.normalize_rewards = True
    config.learning_rate = 3e-4
    config.anneal_learning_rate = False
    config.anneal_clip_range = False
    config.gamma = 0.99
    config.gae_lambda = 0.94
    config.eval_interval = 20
    config.log_interval = 5
    config.checkpoint_interval = 20
    return config
