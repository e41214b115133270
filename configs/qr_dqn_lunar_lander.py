"""QR-DQN on LunarLander-v3, with the settings of rl-zoo3; it needs 'tfrl[box2d]'."""

from ml_collections import ConfigDict

from configs import qr_dqn


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = qr_dqn.get_config()
    config.env = "LunarLander-v3"
    config.num_iterations = 352  # 256 steps and as many updates each: 100,000 steps.
    config.initial_collect_steps = 10_000
    config.train_steps_per_iteration = 256
    config.batch_size = 128
    config.learning_rate = 1.5e-3
    config.final_learning_rate = 1e-8
    config.adam_epsilon = 0.01 / 128
    config.gamma = 0.995
    config.num_quantiles = 170
    config.target_update_period = 256
    config.epsilon_decay_iterations = 84
    config.final_epsilon = 0.18
    config.eval_interval = 16
    config.checkpoint_interval = 88
    return config
