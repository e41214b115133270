"""SAC on Pendulum-v1; configs/sac_*.py have the settings of other environments.

The settings were chosen on seeds from 100 up.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "Pendulum-v1"  # Gymnasium environment.
    config.agent = "sac"  # Or tqc, or discrete_sac.
    config.seed = 0  # Seed of everything random.
    config.num_envs = 1  # Environments stepped together.
    config.device = ""  # Where to train, such as GPU:0.
    # A loop that is not compiled samples from the buffer's as_dataset pipeline.
    config.jit_compile = True  # Compile the loop by XLA, where possible.

    config.num_iterations = 19_900  # One step and one update each: 20,000 steps.
    config.initial_collect_steps = 100  # Random steps before the first iteration.
    config.collect_steps_per_iteration = 1  # Steps of each environment.
    config.train_steps_per_iteration = 1  # Updates of the weights.
    config.replay = "uniform"  # Or prioritized, with the settings below.
    config.replay_capacity = 20_000  # Frames in the buffer.
    config.priority_exponent = 0.6  # 0 samples uniformly.
    config.importance_exponent = 0.4  # First one; changes linearly over the run.
    config.final_importance_exponent = 1.0  # Last exponent.
    config.goals_per_step = 0  # Goals in hindsight for each step; 0: none.

    config.actor_fc_layer_params = (64, 64)  # Units of the actor's hidden layers.
    config.critic_fc_layer_params = (64, 64)  # Units of each critic's hidden layers.
    config.num_critics = 2  # Critics in the ensemble; 10 in REDQ.
    config.num_min = 0  # Critics in a target's minimum: 2 in REDQ; 0 takes all.
    config.num_quantiles = 25  # TQC: quantiles that a critic predicts.
    config.num_dropped_quantiles = 2  # TQC: largest ones dropped for each critic.
    config.normalize_observations = False  # By their running mean and variance.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.batch_size = 64  # Frames in an update.
    config.actor_learning_rate = 1e-3  # Of Adam.
    config.critic_learning_rate = 1e-3  # Of Adam.
    config.alpha_learning_rate = 1e-3  # Of Adam; 0 keeps the temperature.
    config.anneal_learning_rates = False  # Whether they fall linearly to 0.
    config.initial_alpha = 1.0  # First temperature.
    # Of actions scaled to [-1, 1]. SacAgent's own default is half of it.
    config.target_entropy_per_dimension = -1.0  # Entropy of the policy.
    config.target_entropy_fraction = 0.98  # Discrete SAC: share of the largest one.
    config.ou_stddev = 0.0  # Of the Ornstein-Uhlenbeck noise on actions in [-1, 1].
    config.ou_damping = 0.15  # 1 is uncorrelated noise.
    config.gsde_sample_freq = 0  # Steps of a matrix of state-dependent noise; 0: none.
    config.gsde_initial_log_std = -3.0  # First logarithm of that noise's deviations.
    config.gamma = 0.99  # Discount of a step.
    config.n_step_update = 1  # Steps in a return.
    config.target_update_tau = 0.005  # Step of the targets to the critics.
    config.target_update_period = 1  # Updates between such steps.

    config.eval_interval = 1_000  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 500  # Iterations between lines of the log.
    config.checkpoint_interval = 5_000  # Iterations between checkpoints.
    return config
