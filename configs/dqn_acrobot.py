"""DQN on Acrobot-v1, with the settings of rl-zoo3."""

from ml_collections import ConfigDict

from configs import dqn


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn.get_config()
    config.env = "Acrobot-v1"
    config.num_iterations = 25_000  # 4 steps and 4 updates each: 100,000 steps.
    config.initial_collect_steps = 128
    config.fc_layer_params = (256, 256)
    config.batch_size = 128
    config.learning_rate = 6.3e-4
    config.final_learning_rate = 6.3e-4
    config.adam_epsilon = 1e-8
    config.max_gradient_norm = 10.0
    config.loss = "huber"
    config.gamma = 0.99
    config.n_step_update = 1
    config.double_q = False
    config.target_update_tau = 1.0
    config.target_update_period = 250
    config.epsilon_decay_iterations = 3_000
    config.final_epsilon = 0.1
    config.eval_interval = 1_250
    config.log_interval = 250
    config.checkpoint_interval = 5_000
    return config
