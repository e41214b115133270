"""PPO on CartPole-v1; configs/ppo_*.py have the settings of other environments.

The settings are those that rl-zoo3 publishes for 100,000 steps, with longer rollouts
and a discount and a lambda nearer to 1: with rl-zoo3's own, 3 of 64 seeds do not learn
to keep the cart on the track, and with these all 128 that were tried do.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "CartPole-v1"  # Gymnasium environment.
    config.agent = "ppo"  # Or a2c, whose settings are in configs/a2c.py.
    config.seed = 0  # Seed of everything random.
    config.num_envs = 8  # Environments stepped together.
    config.device = ""  # Where to train, such as GPU:0.
    config.jit_compile = True  # Compile the loop by XLA, where possible.

    config.num_iterations = 98  # Rollouts of 1,024 steps: 100,000 in all.
    config.collect_steps_per_iteration = 128  # Steps of each environment.
    config.num_epochs = 20  # How often a rollout is trained on.
    config.minibatch_size = 256  # Frames in an update; 0 takes a whole rollout.
    config.target_kl = 0.0  # KL divergence that ends a rollout's updates; 0: none.

    # Each convolution has a number of filters, a kernel size and a stride.
    config.conv_layer_params = ()  # For images; none for other observations.
    config.fc_layer_params = (64, 64)  # Units of the hidden layers of each network.
    config.lstm_size = 0  # Units of an LSTM after these layers; 0: none.
    config.output_fc_layer_params = ()  # Units of the hidden layers after the LSTM.
    config.activation = "tanh"  # Of the hidden layers, such as relu.
    config.initial_log_stddev = 0.0  # Logarithm of a continuous action's deviation.
    config.normalize_observations = False  # By their running mean and variance.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.normalize_rewards = False  # By the running deviation of their returns.
    config.learning_rate = 1e-3  # Of Adam.
    config.anneal_learning_rate = True  # Whether it falls linearly to 0.
    config.clip_range = 0.2  # PPO: of the ratio of new and old probabilities.
    config.anneal_clip_range = True  # Whether it falls linearly to 0.
    config.value_clip_range = 0.0  # PPO: of the change of values; 0: unlimited.
    config.gamma = 0.99  # Discount of a step.
    config.gae_lambda = 0.95  # 1 takes returns, 0 one-step targets.
    config.entropy_regularization = 0.0  # Weight of the policy's entropy in the loss.
    config.value_loss_weight = 0.5  # Weight of the squared error of the values.
    config.gradient_clipping = 0.5  # Largest norm of all gradients together.
    config.normalize_advantages = True  # In each minibatch.

    config.eval_interval = 14  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 2  # Iterations between lines of the log.
    config.checkpoint_interval = 28  # Iterations between checkpoints.
    return config
