"""QR-DQN on CartPole-v1, with the settings of rl-zoo3."""

from ml_collections import ConfigDict

from configs import dqn


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn.get_config()
    config.agent = "qr_dqn"
    config.num_iterations = 192  # 256 steps and 128 updates each: 50,000 steps.
    config.initial_collect_steps = 1_000
    config.collect_steps_per_iteration = 256
    config.train_steps_per_iteration = 128
    config.replay_capacity = 100_000
    config.fc_layer_params = (256, 256)
    config.learning_rate = 2.3e-3
    config.final_learning_rate = 2.3e-3
    config.adam_epsilon = 0.01 / 64
    config.gamma = 0.99
    config.n_step_update = 1
    config.double_q = False
    config.num_quantiles = 10
    # Every 10 steps, which is at the end of each iteration.
    config.target_update_tau = 1.0
    config.target_update_period = 128
    config.epsilon_decay_iterations = 31
    config.final_epsilon = 0.04
    config.eval_interval = 8
    config.log_interval = 2
    config.checkpoint_interval = 48
    return config
