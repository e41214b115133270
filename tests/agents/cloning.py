"""Trains agents on recorded actions, for the tests of those that learn offline."""

import numpy as np
import tensorflow as tf

from tfrl.trajectories import time_step as ts


def action_after_training(agent, recordings):
    """Returns the greedy action, one number, after 400 updates.

    Args:
      agent: An agent for observations `[1]`.
      recordings: Makes a batch of experience from NumPy's generator.
    """
    agent.initialize()
    train = tf.function(agent.train, autograph=False)
    rng = np.random.default_rng(0)
    for _ in range(400):
        train(recordings(rng))
    step = ts.restart(tf.ones([1, 1]), batch_size=1)
    return float(agent.policy.action(step).action[0, 0])
