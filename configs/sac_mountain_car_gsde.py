"""SAC on MountainCarContinuous-v0, with state-dependent noise (gSDE) on its actions.

The settings are rl-zoo3's; configs/sac_mountain_car.py has other noise.
"""

from ml_collections import ConfigDict

from configs import sac


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = sac.get_config()
    config.env = "MountainCarContinuous-v0"
    config.num_iterations = 1_559
    config.initial_collect_steps = 100
    config.collect_steps_per_iteration = 32
    config.train_steps_per_iteration = 32
    config.replay_capacity = 50_000
    config.gsde_sample_freq = 32
    config.gsde_initial_log_std = -3.67
    config.alpha_learning_rate = 0.0
    config.initial_alpha = 0.1
    config.actor_learning_rate = 3e-4
    config.critic_learning_rate = 3e-4
    config.batch_size = 512
    config.gamma = 0.9999
    config.target_update_tau = 0.01
    config.eval_interval = 100
    config.log_interval = 20
    config.checkpoint_interval = 500
    return config
