"""SAC on Pendulum-v1, with actors and replay servers.

An iteration is an update.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "Pendulum-v1"  # Gymnasium environment.
    config.agent = "sac"  # dqn, ppo and impala have files of their own.
    config.seed = 0  # Seed of all random numbers.
    config.num_envs = 1  # Environments stepped together, by each actor.
    config.device = ""  # Where the learner trains, such as GPU:0.
    config.jit_compile = True  # Compile actors' loops and updates, where possible.

    config.num_iterations = 20_000  # Updates, one for each step of an environment.
    config.initial_collect_steps = 100  # Steps before the first update.
    config.train_steps_per_iteration = 1  # Updates in each iteration.
    config.samples_per_insert = 64.0  # How often each transition is sampled.
    config.push_period = 10  # Updates between pushes of the weights.
    config.pull_period = 5  # Steps of an actor between pulls.
    config.replay = "uniform"  # The only kind.
    config.replay_capacity = 20_000  # Frames in all servers together.

    config.actor_fc_layer_params = (64, 64)  # Units of the actor's hidden layers.
    config.critic_fc_layer_params = (64, 64)  # Units of each critic's hidden layers.
    config.num_critics = 2  # Critics in the ensemble; 10 in REDQ.
    config.num_min = 0  # Critics in a target's minimum; 2 in REDQ, 0 uses all.
    config.normalize_observations = False  # By their running mean and variance.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.batch_size = 64  # Frames in each update.
    config.actor_learning_rate = 1e-3  # Learning rate of Adam.
    config.critic_learning_rate = 1e-3  # Learning rate of Adam.
    config.alpha_learning_rate = 1e-3  # Learning rate of Adam; 0 fixes the temperature.
    config.anneal_learning_rates = False  # Whether they fall linearly to 0.
    config.initial_alpha = 1.0  # First temperature.
    # Of actions scaled to [-1, 1].
    config.target_entropy_per_dimension = -1.0  # Entropy of the policy.
    config.ou_stddev = 0.0  # Of the Ornstein-Uhlenbeck noise on actions in [-1, 1].
    config.ou_damping = 0.15  # Damping of that noise; 1 makes it uncorrelated.
    config.gsde_sample_freq = 0  # Steps of a matrix of state-dependent noise; 0: none.
    config.gsde_initial_log_std = -3.0  # First log standard deviation of that noise.
    config.gamma = 0.99  # Discount per step.
    config.n_step_update = 1  # Steps in an n-step return.
    config.target_update_tau = 0.005  # Step of the targets to the critics.
    config.target_update_period = 1  # Updates between steps of the target networks.

    config.eval_interval = 1_000  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 500  # Iterations between lines of the log.
    config.checkpoint_interval = 5_000  # Iterations between checkpoints.
    return config
