"""Rainbow on CartPole-v1: C51 with all its parts.

The parts are double Q-learning, a dueling network, noisy layers instead of epsilon, 3
steps in a return, and prioritized replay. Hessel et al., "Rainbow: Combining
improvements in deep reinforcement learning" (2018, arXiv:1710.02298).
"""

from ml_collections import ConfigDict

from configs import dqn


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = dqn.get_config()
    config.agent = "rainbow"
    config.num_iterations = 24_750  # 4 steps and 2 updates each: 100,000 steps.
    config.train_steps_per_iteration = 2
    config.replay = "prioritized"
    config.priority_exponent = 0.5
    config.learning_rate = 1e-3
    config.dueling = True
    config.noisy_stddev = 0.5
    config.initial_epsilon = 0.0
    config.final_epsilon = 0.0
    return config
