"""C51 on CartPole-v1, with the settings of CleanRL."""

from ml_collections import ConfigDict

from configs import dqn


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn.get_config()
    config.agent = "c51"
    config.num_iterations = 49_000  # 10 steps and an update each: 500,000 steps.
    config.initial_collect_steps = 10_000
    config.collect_steps_per_iteration = 10
    config.train_steps_per_iteration = 1
    config.replay_capacity = 10_000
    config.fc_layer_params = (120, 84)
    config.batch_size = 128
    config.learning_rate = 2.5e-4
    config.final_learning_rate = 2.5e-4
    config.adam_epsilon = 0.01 / 128
    config.gamma = 0.99
    config.n_step_update = 1
    config.double_q = False
    config.num_atoms = 101
    config.min_q_value = -100.0
    config.max_q_value = 100.0
    config.target_update_tau = 1.0
    config.target_update_period = 50
    config.epsilon_decay_iterations = 25_000
    config.eval_interval = 2_450
    config.log_interval = 490
    config.checkpoint_interval = 9_800
    return config
