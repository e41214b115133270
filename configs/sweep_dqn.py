"""Double DQN on CartPole-v1 with a small network, for many runs together."""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the script may override."""
    config = ConfigDict()
    config.env = "CartPole-v1"
    # The seed of the first run; the others have the seeds after it.
    config.seed = 0
    config.num_envs = 1
    # The values that a continuous action may take, evenly spaced; 0 for discrete ones.
    config.num_action_bins = 0
    config.device = ""  # Where to train, such as "GPU:0"; "" is TensorFlow's choice.

    # An iteration is a step of each environment and one update.
    config.num_iterations = 30_000
    config.initial_collect_steps = 1_000
    config.replay_capacity = 30_000

    config.fc_layer_params = (100,)
    config.batch_size = 64
    config.gamma = 0.99
    config.target_update_tau = 0.02
    config.initial_epsilon = 1.0
    config.final_epsilon = 0.05
    config.epsilon_decay_iterations = 5_000

    config.eval_interval = 1_000
    config.num_eval_episodes = 10
    # A checkpoint is saved after the evaluation that follows.
    config.checkpoint_interval = 5_000
    return config
