"""IQL, CQL or behavioural cloning on recorded episodes of Pendulum-v1.

The settings were chosen on seeds from 100 up, of the data too.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.agent = "iql"  # Or cql, or bc for behavioural cloning.
    config.env = "Pendulum-v1"  # Gymnasium environment of the data, to evaluate in.
    config.data = "logs/recordings/*.tfrecord"  # Files, or a folder of Minari's.
    config.seed = 0  # Seed of everything random.
    config.device = ""  # Where to train, such as GPU:0.
    config.jit_compile = True  # Compile the loop by XLA, where possible.

    config.num_iterations = 20_000  # One update each.
    config.train_steps_per_iteration = 1  # Updates of the weights.
    config.batch_size = 64  # Frames in an update.
    config.fc_layer_params = (64, 64)  # Units of each network's hidden layers.
    config.normalize_observations = False  # By the data's mean and variance.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.learning_rate = 1e-3  # Of Adam.
    config.gamma = 0.99  # Discount of a step; bc has none of the settings from here on.
    config.reward_scale = 0.1  # Factor of the rewards.
    config.target_update_tau = 0.005  # Step of the targets to the critics.

    config.expectile = 0.7  # IQL: of the values of recorded actions.
    config.inverse_temperature = 10.0  # IQL: of the advantages; 0 clones all actions.
    config.cql_alpha = 0.1  # CQL: weight of the penalty.
    config.num_cql_samples = 4  # CQL: actions of each kind in the penalty.

    config.eval_interval = 2_000  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 500  # Iterations between lines of the log.
    config.checkpoint_interval = 5_000  # Iterations between checkpoints.
    return config
