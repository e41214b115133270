"""REINFORCE on CartPole-v0: one hidden layer, two episodes per update."""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "CartPole-v0"  # Gymnasium environment.
    config.seed = 0  # Seed of everything random.
    config.num_envs = 1  # Environments stepped together.
    config.device = ""  # Where to train, such as GPU:0.
    # A compiled loop is three times faster here, but compilation takes as long as 250
    # iterations save.
    config.jit_compile = False  # Compile the loop by XLA, where possible.

    config.num_iterations = 250  # Length of the run.
    config.collect_episodes_per_iteration = 2  # Episodes in an update.
    config.replay = "uniform"  # Only uniform; see train_reinforce_service.
    config.replay_capacity = 2_000  # Frames in the buffer.

    config.fc_layer_params = (100,)  # Units of the hidden layers.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.learning_rate = 1e-3  # Of Adam.
    config.gamma = 1.0  # Discount of a step.
    config.normalize_returns = True  # To mean 0 and standard deviation 1.
    config.use_baseline = False  # Train a state-value baseline.
    config.entropy_regularization = 0.0  # Weight of the policy's entropy in the loss.

    config.eval_interval = 25  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 5  # Iterations between lines of the log.
    config.checkpoint_interval = 25  # Iterations between checkpoints.
    return config
