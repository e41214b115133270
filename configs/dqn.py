"""Double DQN on CartPole-v1."""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.env = "CartPole-v1"
    config.seed = 0
    config.num_envs = 1

    # 1,000 random steps, then 49,000 iterations of one step and one update.
    config.num_iterations = 49_000
    config.initial_collect_steps = 1_000
    config.collect_steps_per_iteration = 1
    config.train_steps_per_iteration = 1
    config.replay_capacity = 50_000
    config.sampling = "dataset"

    config.fc_layer_params = (100,)
    config.batch_size = 64
    config.learning_rate = 1e-3
    config.final_learning_rate = 1e-5
    config.gamma = 0.99
    config.n_step_update = 1
    config.double_q = True
    config.target_update_tau = 0.01
    config.target_update_period = 1
    config.initial_epsilon = 1.0
    config.final_epsilon = 0.02
    config.epsilon_decay_iterations = 8_000

    config.eval_interval = 2_500
    config.num_eval_episodes = 10
    config.log_interval = 500
    config.checkpoint_interval = 5_000
    return config
