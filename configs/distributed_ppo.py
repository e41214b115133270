"""PPO on CartPole-v1, with actors and replay servers.

An iteration trains several epochs on 16 sequences of any environments of the actors.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "CartPole-v1"  # Gymnasium environment.
    config.agent = "ppo"  # dqn, sac and impala have files of their own.
    config.seed = 0  # Seed of all random numbers.
    config.num_envs = 8  # Environments stepped together, by each actor.
    config.device = ""  # Where the learner trains, such as GPU:0.
    config.jit_compile = True  # Compile actors' loops and updates, where possible.

    config.num_iterations = 200  # Trainings, each on 2,048 steps.
    config.sequence_length = 128  # Steps in a sequence.
    config.push_period = 1  # Iterations between pushes of the weights.
    config.pull_period = 128  # Steps of an actor between pulls.
    config.max_queue_size = 16  # Sequences that wait for an iteration.
    config.num_epochs = 10  # Updates on the same sequences.

    # Each convolution has a number of filters, a kernel size and a stride.
    config.conv_layer_params = ()  # For images; none for other observations.
    config.fc_layer_params = (64, 64)  # Units of the hidden layers of each network.
    config.activation = "tanh"  # Activation of the hidden layers, such as relu.
    config.normalize_observations = False  # By their running mean and variance.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.batch_size = 16  # Sequences in an iteration.
    config.learning_rate = 1e-3  # Learning rate of Adam.
    config.anneal_learning_rate = True  # Whether the rate falls linearly to 0.
    config.clip_range = 0.2  # Clip range of the ratio of new to old probabilities.
    config.anneal_clip_range = True  # Whether the clip range falls linearly to 0.
    config.value_clip_range = 0.0  # Clip range of the change of values; 0: unlimited.
    config.gamma = 0.99  # Discount per step.
    config.gae_lambda = 0.95  # Lambda: 1 uses full returns, 0 one-step targets.
    config.entropy_regularization = 0.0  # Weight of the policy's entropy in the loss.
    config.value_loss_weight = 0.5  # Weight of the squared error of the values.
    config.gradient_clipping = 0.5  # Largest norm of all gradients together.
    config.normalize_advantages = True  # In each iteration.

    config.eval_interval = 20  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 5  # Iterations between lines of the log.
    config.checkpoint_interval = 50  # Iterations between checkpoints.
    return config
