"""DDPG on MountainCarContinuous-v0, whose correlated noise reaches the flag.

TD3's noise has no correlation in time, so the car rarely leaves the valley by it.
"""

from ml_collections import ConfigDict

from configs import td3


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = td3.get_config()
    config.env = "MountainCarContinuous-v0"
    config.agent = "ddpg"
    config.num_iterations = 48_000
    config.initial_collect_steps = 2_000
    config.replay_capacity = 50_000
    config.ou_stddev = 0.5
    config.ou_damping = 0.15
    config.gamma = 0.99
    config.actor_learning_rate = 3e-4
    config.critic_learning_rate = 3e-4
    config.batch_size = 256
    config.target_update_tau = 0.01
    return config
