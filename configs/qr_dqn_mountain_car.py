"""QR-DQN on MountainCar-v0, with the settings of rl-zoo3."""

from ml_collections import ConfigDict

from configs import dqn_mountain_car


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn_mountain_car.get_config()
    config.agent = "qr_dqn"
    config.num_quantiles = 25
    config.adam_epsilon = 0.01 / 128
    config.max_gradient_norm = 0.0
    return config
