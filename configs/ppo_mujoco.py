"""PPO on MuJoCo's HalfCheetah-v5, and by --env on Hopper-v5 and others of its kind.

It needs `pip install 'tfrl[mujoco]'`. The settings are Tianshou's, but for one
environment at a time, for advantages that are computed once a rollout, and for a rate
that falls over 1,000,000 steps and not over 3,000,000.
On HalfCheetah-v5, seed 100, they reach several times the return of CleanRL's settings,
which normalize advantages, weigh the values by 0.5 and start with a deviation of 1.
Swimmer-v5 needs other settings, which the score table's command has: the defaults of
Stable-Baselines3 with rl-zoo3's gamma=0.9999 for it, and gae_lambda=0.99. On seed 100
they reach 363, with gae_lambda=0.95 159, and Tianshou's settings with both numbers 153.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("ppo_mujoco")
