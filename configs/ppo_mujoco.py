"""PPO on MuJoCo's HalfCheetah-v5, and by --env on Hopper-v5 and others of its kind.

It needs `pip install 'tfrl[mujoco]'`. The settings are Tianshou's for 1,000,000 steps,
but for one environment at a time and for advantages that are computed once a rollout.
On HalfCheetah-v5, seed 100, they reach several times the return of CleanRL's settings,
which normalize advantages, weigh the values by 0.5 and start with a deviation of 1.
Swimmer-v5 needs other settings, which the score table's command has: rl-zoo3's, among
them gamma=0.9999, and gae_lambda=0.99. On seed 100 they reach 363, with gae_lambda=0.95
159, and Tianshou's settings with both numbers 153.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    return registry.config_of("ppo_mujoco")
