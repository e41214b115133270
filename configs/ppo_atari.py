"""PPO on an Atari game, for 10,000,000 steps of four frames.

It needs `pip install 'tfrl[atari]'`, or `'tfrl[envpool]'` for
`--config.emulator=envpool`, a faster emulator with other episodes for the same seed.
While it learns, a lost life ends an episode and rewards become their signs; evaluations
play whole games for all their points. The settings are those that rl-zoo3 publishes,
but actor and critic share no layers.
"""

from ml_collections import ConfigDict

from configs import ppo


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ppo.get_config()
    config.env = "PongNoFrameskip-v4"
    config.emulator = "ale-py"  # Of Atari games; or envpool.
    config.jit_compile = False  # On a CPU, XLA's convolutions are slower.
    config.num_iterations = 9_765
    config.collect_steps_per_iteration = 128
    config.num_epochs = 4
    config.conv_layer_params = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
    config.fc_layer_params = (512,)
    config.activation = "relu"
    config.learning_rate = 2.5e-4
    config.clip_range = 0.1
    config.gamma = 0.99
    config.gae_lambda = 0.95
    config.entropy_regularization = 0.01
    config.eval_interval = 200
    config.log_interval = 10
    config.checkpoint_interval = 200
    return config
