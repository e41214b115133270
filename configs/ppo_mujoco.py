"""PPO on MuJoCo's HalfCheetah-v5, and by --env on Hopper-v5 and others of its kind.

It needs `pip install 'tfrl[mujoco]'`. The settings are Tianshou's for 1,000,000 steps,
but for one environment at a time and for advantages that are computed once a rollout.
On HalfCheetah-v5, seed 100, they reach several times the return of CleanRL's settings,
which normalize advantages, weigh the values by 0.5 and start with a deviation of 1.
Swimmer-v5 needs rl-zoo3's discount, --config.gamma=0.9999: its first strokes earn
little.
"""

from ml_collections import ConfigDict

from configs import ppo


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ppo.get_config()
    config.env = "HalfCheetah-v5"
    config.num_envs = 1
    config.num_iterations = 489
    config.collect_steps_per_iteration = 2048
    config.num_epochs = 10
    config.minibatch_size = 64
    config.initial_log_stddev = -0.5
    config.normalize_advantages = False
    config.value_loss_weight = 0.25
    config.normalize_observations = True
    config.normalize_rewards = True
    config.learning_rate = 3e-4
    config.anneal_clip_range = False
    config.gamma = 0.99
    config.gae_lambda = 0.95
    config.eval_interval = 20
    config.log_interval = 5
    config.checkpoint_interval = 50
    return config
