"""PQN on CartPole-v1, for 500,000 steps.

The settings are CleanRL's, but with Adam instead of RAdam, and with a larger learning
rate and a discount nearer to 1; configs/dqn.py says why. These two were chosen on seeds
from 100 up.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "CartPole-v1"  # Gymnasium environment.
    config.seed = 0  # Seed of everything random.
    config.num_envs = 4  # Environments stepped together.
    config.num_action_bins = 0  # Values of a continuous action, evenly spaced.
    config.device = ""  # Where to train, such as GPU:0.
    config.jit_compile = True  # Compile the loop by XLA, where possible.

    config.num_iterations = 976  # Rollouts of 512 steps: 500,000 in all.
    config.collect_steps_per_iteration = 128  # Steps of each environment.
    config.num_epochs = 4  # How often a rollout is trained on.
    config.minibatch_size = 128  # Frames in an update; 0 takes a whole rollout.

    config.fc_layer_params = (120, 84)  # Units of the hidden layers.
    config.normalize_observations = False  # By their running mean and variance.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.learning_rate = 1e-3  # Of Adam.
    config.anneal_learning_rate = True  # Whether it falls linearly to 0.
    config.gamma = 0.995  # Discount of a step.
    config.lambda_value = 0.65  # 1 takes returns, 0 one-step targets.
    config.gradient_clipping = 10.0  # Largest norm of all gradients together.
    config.initial_epsilon = 1.0  # First probability of a random action.
    config.final_epsilon = 0.05  # Last probability of a random action.
    config.epsilon_decay_iterations = 488  # Iterations from the first to the last.

    config.eval_interval = 122  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 20  # Iterations between lines of the log.
    config.checkpoint_interval = 244  # Iterations between checkpoints.
    return config
