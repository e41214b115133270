"""DQN with goals in hindsight on 15 bits that it flips one by one.

Andrychowicz et al., "Hindsight experience replay" (2017), section 3.1. Without
hindsight, `--config.goals_per_step=0`, DQN learns nothing here. `--env` takes any
number of bits. An episode fails if its return is minus that number.
"""

from ml_collections import ConfigDict

from configs import dqn


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn.get_config()
    config.env = "BitFlipping15-v0"
    config.num_envs = 2
    config.num_iterations = 74_990  # 2 steps and 2 updates each: 150,000 steps.
    config.initial_collect_steps = 10
    config.collect_steps_per_iteration = 1
    config.train_steps_per_iteration = 2
    config.replay_capacity = 100_000
    config.goals_per_step = 4
    config.fc_layer_params = (256, 256)
    config.learning_rate = 1e-3
    config.final_learning_rate = 1e-3
    config.adam_epsilon = 1e-8
    config.max_gradient_norm = 10.0
    config.loss = "huber"
    config.gamma = 0.98
    config.n_step_update = 1
    config.double_q = False
    config.target_update_tau = 1.0
    config.target_update_period = 100
    config.epsilon_decay_iterations = 7_500
    config.final_epsilon = 0.02
    config.eval_interval = 5_000
    config.num_eval_episodes = 100
    config.log_interval = 2_500
    config.checkpoint_interval = 25_000
    return config
