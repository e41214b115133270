"""IMPALA on CartPole-v1, for 1,000,000 steps.

With --num_actors an update takes 16 sequences of any environments of the actors, which
are as many steps.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "CartPole-v1"  # Gymnasium environment.
    config.seed = 0  # Seed of everything random.
    config.num_envs = 16  # Environments stepped together, by each actor.
    config.device = ""  # Where to train, such as GPU:0.
    config.jit_compile = True  # Compile the loop by XLA, where possible.

    config.num_iterations = 12_500  # Updates, each from 80 steps: 1,000,000 in all.
    config.sequence_length = 5  # Steps of an environment in an update.
    config.collect_update_period = 4  # Updates until collecting takes new weights.
    config.batch_size = 16  # Sequences in an update, with --num_actors.
    config.max_queue_size = 32  # Sequences that wait for it, with --num_actors.

    config.fc_layer_params = (64, 64)  # Units of the hidden layers of each network.
    config.activation = "tanh"  # Of the hidden layers, such as relu.
    config.normalize_observations = False  # By their running mean and variance.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.learning_rate = 7e-4  # Of Adam.
    config.anneal_learning_rate = True  # Whether it falls linearly to 0.
    config.gamma = 0.99  # Discount of a step.
    config.lambda_value = 1.0  # Of V-trace; 0 takes one-step targets.
    config.entropy_regularization = 0.01  # Weight of the policy's entropy in the loss.
    config.value_loss_weight = 0.5  # Weight of the squared error of the values.
    config.max_abs_reward = 0.0  # Size to which rewards are clipped; 0: unlimited.
    config.gradient_clipping = 0.5  # Largest norm of all gradients together.

    config.eval_interval = 1_250  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 250  # Iterations between lines of the log.
    config.checkpoint_interval = 2_500  # Iterations between checkpoints.
    return config
