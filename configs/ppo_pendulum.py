"""PPO on Pendulum-v1, for 100,000 steps.

The settings are those that rl-zoo3 publishes, but with independent noise in each step.
"""

from ml_collections import ConfigDict

from configs import ppo


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ppo.get_config()
    config.env = "Pendulum-v1"
    config.num_envs = 4
    config.num_iterations = 24
    config.collect_steps_per_iteration = 1024
    config.num_epochs = 10
    config.minibatch_size = 64
    config.learning_rate = 1e-3
    config.anneal_learning_rate = False
    config.anneal_clip_range = False
    config.gamma = 0.9
    config.gae_lambda = 0.95
    config.eval_interval = 4
    config.log_interval = 1
    config.checkpoint_interval = 4
    return config
