"""DQN on an Atari game, for 50,000,000 steps of four frames.

The settings are from Mnih et al., "Human-level control through deep reinforcement
learning" (2015), except for the optimizer: Adam, at the rate that Stable-Baselines3 and
CleanRL publish for it, instead of RMSProp. The replay buffer of a million frames takes
7 GB, since it stores each frame once.

It needs `pip install 'tfrl[atari]'`, or `'tfrl[envpool]'` for
`--config.emulator=envpool`, a faster emulator with other episodes for the same seed.
While it learns, a lost life ends an episode and rewards become their signs; evaluations
play whole games for all their points.
"""

from ml_collections import ConfigDict

from configs import dqn


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn.get_config()
    config.env = "PongNoFrameskip-v4"
    config.emulator = "ale-py"  # Of Atari games; or envpool.
    config.jit_compile = False  # On a CPU, XLA's convolutions are slower.

    config.num_iterations = 12_487_500  # 4 steps and an update each.
    config.initial_collect_steps = 50_000
    config.train_steps_per_iteration = 1
    config.replay_capacity = 1_000_000
    config.frame_stack = 4

    config.conv_layer_params = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
    config.fc_layer_params = (512,)
    config.batch_size = 32
    config.learning_rate = 1e-4
    config.final_learning_rate = 1e-4
    config.loss = "huber"
    config.gamma = 0.99
    config.n_step_update = 1
    config.double_q = False
    config.target_update_tau = 1.0
    config.target_update_period = 10_000
    config.final_epsilon = 0.1
    config.epsilon_decay_iterations = 250_000

    config.eval_interval = 62_500
    config.num_eval_episodes = 5
    config.log_interval = 2_500
    config.checkpoint_interval = 250_000
    return config
