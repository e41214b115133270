"""SAC on MuJoCo's Hopper-v5, and by --env on HalfCheetah-v5 and others of its kind.

It needs `pip install 'tfrl[mujoco]'`. The published results used these settings
for 1,000,000 steps (Haarnoja et al., "Soft actor-critic algorithms and applications",
2018).
"""

from ml_collections import ConfigDict

from configs import sac


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = sac.get_config()
    config.env = "Hopper-v5"
    config.num_iterations = 990_000
    config.initial_collect_steps = 10_000
    config.replay_capacity = 1_000_000
    config.actor_fc_layer_params = (256, 256)
    config.critic_fc_layer_params = (256, 256)
    config.batch_size = 256
    config.actor_learning_rate = 3e-4
    config.critic_learning_rate = 3e-4
    config.alpha_learning_rate = 3e-4
    config.eval_interval = 5_000
    config.log_interval = 1_000
    config.checkpoint_interval = 50_000
    return config
