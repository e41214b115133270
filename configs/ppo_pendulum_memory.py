"""Recurrent PPO on Pendulum-v1 without the velocity, for 100,000 steps.

A minibatch is one sequence of 64 steps.
"""

from ml_collections import ConfigDict

from configs import ppo_pendulum


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ppo_pendulum.get_config()
    config.env = "PendulumNoVel-v1"
    config.num_envs = 16
    config.num_iterations = 97
    config.collect_steps_per_iteration = 64
    config.fc_layer_params = (64,)
    config.lstm_size = 64
    config.output_fc_layer_params = (64,)
    config.normalize_rewards = True
    config.normalize_advantages = False
    config.anneal_learning_rate = True
    config.eval_interval = 14
    config.log_interval = 2
    config.checkpoint_interval = 28
    return config
