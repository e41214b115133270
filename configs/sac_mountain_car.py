"""SAC on MountainCarContinuous-v0, with Ornstein-Uhlenbeck noise on its actions.

Without correlated noise the car rarely reaches the flag at first, and training settles
for standing still.
"""

from ml_collections import ConfigDict

from configs import sac


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = sac.get_config()
    config.env = "MountainCarContinuous-v0"
    config.num_iterations = 48_000
    config.initial_collect_steps = 2_000
    config.replay_capacity = 50_000
    config.ou_stddev = 0.5
    config.alpha_learning_rate = 0.0
    config.initial_alpha = 0.1
    config.actor_learning_rate = 3e-4
    config.critic_learning_rate = 3e-4
    config.batch_size = 256
    config.gamma = 0.99
    config.target_update_tau = 0.01
    return config
