"""SAC on BipedalWalker-v3, which needs `pip install 'tfrl[box2d]'`.

The settings are rl-zoo3's for 500,000 steps: 64 updates follow 64 steps, in
which state-dependent noise (gSDE) keeps its matrix.
"""

from ml_collections import ConfigDict

from configs import sac


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = sac.get_config()
    config.env = "BipedalWalker-v3"
    config.num_iterations = 7_656
    config.initial_collect_steps = 10_000
    config.collect_steps_per_iteration = 64
    config.train_steps_per_iteration = 64
    config.replay_capacity = 300_000
    config.gsde_sample_freq = 64
    config.actor_fc_layer_params = (400, 300)
    config.critic_fc_layer_params = (400, 300)
    config.batch_size = 256
    config.actor_learning_rate = 7.3e-4
    config.critic_learning_rate = 7.3e-4
    config.alpha_learning_rate = 7.3e-4
    config.gamma = 0.98
    config.target_update_tau = 0.02
    config.eval_interval = 150
    config.log_interval = 50
    config.checkpoint_interval = 750
    return config
