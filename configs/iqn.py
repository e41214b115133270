"""IQN on CartPole-v1."""

from ml_collections import ConfigDict

from configs import dqn


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn.get_config()
    config.agent = "iqn"
    config.num_iterations = 24_750  # 4 steps and 2 updates each: 100,000 steps.
    config.train_steps_per_iteration = 2
    config.learning_rate = 1e-3
    config.num_quantiles = 8
    return config
