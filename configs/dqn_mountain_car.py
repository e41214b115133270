"""DQN on MountainCar-v0, with rl-zoo3's settings."""

from ml_collections import ConfigDict

from configs import dqn


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn.get_config()
    config.env = "MountainCar-v0"
    config.num_iterations = 7_438  # 16 steps and 8 updates each: 120,000 steps.
    config.initial_collect_steps = 1_000
    config.collect_steps_per_iteration = 16
    config.train_steps_per_iteration = 8
    config.replay_capacity = 10_000
    config.fc_layer_params = (256, 256)
    config.batch_size = 128
    config.learning_rate = 4e-3
    config.final_learning_rate = 4e-3
    config.adam_epsilon = 1e-8
    config.max_gradient_norm = 10.0
    config.loss = "huber"
    config.gamma = 0.98
    config.n_step_update = 1
    config.double_q = False
    # Every 600 steps, 300 updates.
    config.target_update_tau = 1.0
    config.target_update_period = 300
    config.epsilon_decay_iterations = 1_500
    config.final_epsilon = 0.07
    config.eval_interval = 372
    config.log_interval = 93
    config.checkpoint_interval = 1_860
    return config
