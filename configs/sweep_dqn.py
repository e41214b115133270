"""Double DQN on CartPole-v1 with a small network, for many runs together."""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the script may override."""
    config = ConfigDict()
    config.env = "CartPole-v1"  # Gymnasium environment; native ones are fast.
    config.seed = 0  # The seed of the first run; others follow.
    config.num_envs = 1  # Environments stepped together.
    config.num_action_bins = 0  # Values of a continuous action, evenly spaced.
    config.device = ""  # Where to train, such as GPU:0.

    config.num_iterations = 30_000  # A step of each environment and an update each.
    config.initial_collect_steps = 1_000  # Random steps before the first iteration.
    config.replay_capacity = 30_000  # Size of the buffer, in frames.

    config.fc_layer_params = (100,)  # Units of the hidden layers.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.batch_size = 64  # Frames in each update.
    config.gamma = 0.99  # Discount per step.
    config.target_update_tau = 0.02  # Step of the target network to the Q-network.
    config.initial_epsilon = 1.0  # First probability of a random action.
    config.final_epsilon = 0.05  # Last probability of a random action.
    config.epsilon_decay_iterations = 5_000  # Iterations from the first to the last.

    config.eval_interval = 1_000  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.checkpoint_interval = 5_000  # Iterations between checkpoints.
    return config
