"""TQC with goals in hindsight on FetchReach-v4, with the settings of rl-zoo3.

The environment needs the extra `robotics`.
"""

from ml_collections import ConfigDict

from configs import sac


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = sac.get_config()
    config.env = "FetchReach-v4"
    config.agent = "tqc"
    config.num_iterations = 19_000  # One step and one update each: 20,000 steps.
    config.initial_collect_steps = 1_000
    config.goals_per_step = 4
    config.num_critics = 1
    config.normalize_observations = True
    config.batch_size = 256
    config.gamma = 0.95
    config.eval_interval = 2_000
    config.checkpoint_interval = 10_000
    return config
