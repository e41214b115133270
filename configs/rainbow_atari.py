"""Rainbow on an Atari game, for 50,000,000 steps of four frames.

The settings follow Hessel et al., "Rainbow: Combining improvements in deep
reinforcement learning" (2018, arXiv:1710.02298). The numbers of steps, atoms and
frames, the rates and the periods were compared with Dopamine's rainbow_aaai.gin, which
follows the paper, too, and are the same; Dopamine has no noisy, dueling or double
networks. No run of these settings has been trained to its end here. For the rest, see
configs/dqn_atari.py.
"""

from ml_collections import ConfigDict

from configs import dqn_atari


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn_atari.get_config()
    config.agent = "rainbow"
    config.num_iterations = 12_495_000
    config.initial_collect_steps = 20_000
    config.replay = "prioritized"
    config.priority_exponent = 0.5
    config.dueling = True
    config.noisy_stddev = 0.5
    config.n_step_update = 3
    config.double_q = True
    config.min_q_value = -10.0
    config.max_q_value = 10.0
    config.learning_rate = 6.25e-5
    config.final_learning_rate = 6.25e-5
    config.adam_epsilon = 1.5e-4
    config.target_update_period = 2_000  # Updates: 8,000 steps.
    config.initial_epsilon = 0.0
    config.final_epsilon = 0.0
    return config
