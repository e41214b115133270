"""Double DQN with 3-step returns on CartPole-v1, with actors and replay servers.

The settings were chosen on seeds from 100 up. An iteration is an update.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "CartPole-v1"  # Gymnasium environment.
    config.agent = "dqn"  # r2d2, sac, ppo and impala have files of their own.
    config.seed = 0  # Seed of all random numbers.
    config.num_envs = 4  # Environments stepped together, by each actor.
    config.device = ""  # Where the learner trains, such as GPU:0.
    config.num_action_bins = 0  # Values of a continuous action, evenly spaced.
    config.jit_compile = True  # Compile actors' loops and updates, where possible.

    config.num_iterations = 40_000  # Updates, one for two steps: 81,000 steps in all.
    config.initial_collect_steps = 1_000  # Steps before the first update.
    config.train_steps_per_iteration = 1  # Updates in each iteration.
    config.samples_per_insert = 32.0  # How often each transition is sampled.
    config.push_period = 20  # Updates between pushes of the weights.
    config.pull_period = 10  # Steps of an actor between pulls.
    config.replay = "uniform"  # How frames are drawn: uniform or prioritized.
    config.priority_exponent = 0.6  # Exponent of the priorities; 0 samples uniformly.
    config.importance_exponent = 0.4  # 1 corrects all of the bias.
    config.replay_capacity = 50_000  # Frames in all servers together.

    config.fc_layer_params = (100, 100)  # Units of the hidden layers.
    config.normalize_observations = False  # By their running mean and variance.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.batch_size = 64  # Frames in each update.
    config.learning_rate = 2e-3  # First learning rate of Adam; falls linearly.
    config.final_learning_rate = 1e-5  # Last rate of Adam.
    config.adam_epsilon = 1e-7  # Epsilon in the denominator of Adam's step.
    config.max_gradient_norm = 0.0  # Of all gradients together; 0: unlimited.
    config.loss = "squared"  # Or huber.
    config.gamma = 0.995  # Discount per step.
    config.n_step_update = 3  # Steps in an n-step return.
    config.double_q = True  # The online network chooses the next action.
    config.dueling = False  # Separate layers for values and advantages.
    config.noisy_stddev = 0.0  # First noise of the last layers; 0.5 is usual.
    config.munchausen = False  # Munchausen; not with double_q or n steps.
    config.target_update_tau = 0.02  # Step of the target network to the Q-network.
    config.target_update_period = 1  # Updates between steps of the target networks.
    config.initial_epsilon = 1.0  # First probability of a random action.
    config.final_epsilon = 0.05  # Last probability of a random action.
    config.epsilon_decay_iterations = 8_000  # Updates from the first to the last.

    config.eval_interval = 2_000  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 500  # Iterations between lines of the log.
    config.checkpoint_interval = 5_000  # Iterations between checkpoints.
    return config
