"""R2D2 on CartPole-v1 without velocities.

Kapturowski et al., "Recurrent experience replay in distributed reinforcement learning"
(2019). The observations are the positions of cart and pole, so the network has to
remember the ones before.
"""

from ml_collections import ConfigDict

from configs import dqn


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn.get_config()
    config.env = "CartPoleNoVel-v1"
    config.agent = "r2d2"
    config.num_iterations = 49_750  # 4 steps and 1 update each: 200,000 steps.
    config.train_steps_per_iteration = 1
    config.replay = "prioritized"
    config.replay_capacity = 100_000
    config.priority_exponent = 0.9
    config.importance_exponent = 0.6
    config.final_importance_exponent = 0.6
    config.priority_eta = 0.9
    config.fc_layer_params = (64,)
    config.lstm_size = 64
    config.burn_in_length = 10
    config.trace_length = 20
    config.batch_size = 32  # Sequences in an update.
    config.learning_rate = 1e-3
    config.n_step_update = 5
    config.epsilon_decay_iterations = 5_000
    config.eval_interval = 2_000
    config.log_interval = 500
    config.checkpoint_interval = 10_000
    return config
