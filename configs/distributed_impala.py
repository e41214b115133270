"""IMPALA on CartPole-v1, with actors and replay servers.

An iteration is an update on 16 sequences of any environments of the actors.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "CartPole-v1"  # Gymnasium environment.
    config.agent = "impala"  # dqn, sac and ppo have files of their own.
    config.seed = 0  # Seed of all random numbers.
    config.num_envs = 8  # Environments stepped together, by each actor.
    config.device = ""  # Where the learner trains, such as GPU:0.
    config.jit_compile = True  # Compile actors' loops and updates, where possible.

    config.num_iterations = 6_000  # Updates, each on 320 steps.
    config.sequence_length = 20  # Steps in a sequence.
    config.push_period = 1  # Updates between pushes of the weights.
    config.pull_period = 20  # Steps of an actor between pulls.
    config.max_queue_size = 32  # Sequences that wait for an update.

    config.fc_layer_params = (64, 64)  # Units of the hidden layers of each network.
    config.activation = "tanh"  # Activation of the hidden layers, such as relu.
    config.normalize_observations = False  # By their running mean and variance.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.batch_size = 16  # Sequences in an update.
    config.learning_rate = 1e-3  # Learning rate of Adam.
    config.anneal_learning_rate = True  # Whether the rate falls linearly to 0.
    config.gamma = 0.99  # Discount per step.
    config.lambda_value = 1.0  # Lambda of V-trace; 0 uses one-step targets.
    config.entropy_regularization = 0.01  # Weight of the policy's entropy in the loss.
    config.value_loss_weight = 0.5  # Weight of the squared error of the values.
    config.max_abs_reward = 0.0  # Size to which rewards are clipped; 0: unlimited.
    config.gradient_clipping = 0.5  # Largest norm of all gradients together.

    config.eval_interval = 600  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 50  # Iterations between lines of the log.
    config.checkpoint_interval = 2_000  # Iterations between checkpoints.
    return config
