"""Recurrent PPO on CartPole-v1 without velocities, for 100,000 steps.

Actor and critic have an LSTM each, since one observation does not tell which way the
pole falls. A minibatch has whole sequences, two of 64 steps.
"""

from ml_collections import ConfigDict

from configs import ppo


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ppo.get_config()
    config.env = "CartPoleNoVel-v1"
    config.num_iterations = 196
    config.collect_steps_per_iteration = 64
    config.num_epochs = 10
    config.minibatch_size = 128
    config.fc_layer_params = (64,)
    config.lstm_size = 64
    config.activation = "relu"
    config.eval_interval = 28
    config.log_interval = 4
    config.checkpoint_interval = 56
    return config
