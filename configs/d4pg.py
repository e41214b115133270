"""D4PG on Pendulum-v1.

For cartpole:balance of dm_control take configs/d4pg_cartpole.py.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "Pendulum-v1"  # Gymnasium environment, or dm_control/DOMAIN-TASK.
    config.seed = 0  # Seed of everything random.
    config.num_envs = 1  # Environments stepped together.
    config.device = ""  # Where to train, such as GPU:0.
    config.jit_compile = True  # Compile the loop by XLA, where possible.

    config.num_iterations = 29_000  # A step and an update each: 30,000 steps.
    config.initial_collect_steps = 1_000  # Random steps before the first iteration.
    config.collect_steps_per_iteration = 1  # Steps of each environment.
    config.train_steps_per_iteration = 1  # Updates of the critic and of the actor.
    config.replay = "uniform"  # Or prioritized, with the settings below.
    config.replay_capacity = 200_000  # Frames in the buffer.
    config.priority_exponent = 0.6  # 0 samples uniformly.
    config.importance_exponent = 0.4  # First one; changes linearly over the run.
    config.final_importance_exponent = 1.0  # Last exponent.
    config.goals_per_step = 0  # Goals in hindsight for each step; 0: none.

    config.fc_layer_params = (64, 64)  # Units of the hidden layers.
    config.vmin = -814.0  # The least reward, -16.27, divided by 1 - gamma.
    config.vmax = 0.0  # The greatest return.
    config.num_atoms = 51  # Values between them that the critic has probabilities for.
    config.normalize_observations = False  # By their running mean and variance.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.batch_size = 64  # Frames in an update.
    config.actor_learning_rate = 1e-3  # Of Adam.
    config.critic_learning_rate = 1e-3  # Of Adam.
    config.gamma = 0.98  # Discount of a step.
    config.n_step_update = 5  # Steps in a return.
    config.target_update_tau = 1.0  # Step of the targets to the networks; 1 copies.
    config.target_update_period = 100  # Updates between such steps.
    config.sigma = 0.3  # Gaussian noise, in units of half of the range of each action.

    config.eval_interval = 1_000  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 500  # Iterations between lines of the log.
    config.checkpoint_interval = 5_000  # Iterations between checkpoints.
    return config
