"""The networks of MR.Q's paper."""

import numpy as np
import tensorflow as tf

from tfrl import agents
from tfrl.agents import mrq
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import time_step as ts


def test_the_papers_networks_have_its_size():
    made = mrq.make_networks(
        tf.TensorSpec([17], tf.float32), BoundedTensorSpec([6], tf.float32, -1, 1)
    )
    agent = agents.MrqAgent(
        ts.time_step_spec(tf.TensorSpec([17], tf.float32)),
        BoundedTensorSpec([6], tf.float32, -1, 1),
        *made,
        *[None] * 3,
    )
    learned = sum(
        np.prod(v.shape) for part in agent._parts for v in part.trained_variables()
    )
    # The layers' weights and biases; the paper says 4.1 million without listing them.
    state = 17 * 512 + 512 + 2 * (512 * 512 + 512)
    pair = 6 * 256 + 256 + 768 * 512 + 512 + 2 * (512 * 512 + 512)
    model = 512 * (512 + 65 + 1) + 512 + 65 + 1
    actor = 2 * (512 * 512 + 512) + 512 * 6 + 6
    critic = 3 * (512 * 512 + 512) + 512 + 1
    assert learned == state + pair + model + actor + 2 * critic
