"""Recurrent PPO on CartPole-v1 without velocities, for 100,000 steps.

Actor and critic have an LSTM each, since one observation does not tell which way the
pole falls. A minibatch has whole sequences, two of 128 steps.
"""

from ml_collections import ConfigDict

from configs import ppo


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ppo.get_config()
    config.env = "CartPoleNoVel-v1"
    config.fc_layer_params = (64,)
    config.lstm_size = 64
    config.output_fc_layer_params = (64,)
    config.activation = "relu"
    config.learning_rate = 2e-3
    return config
