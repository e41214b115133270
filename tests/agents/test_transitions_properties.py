"""Sums over n steps of sequences, which masked transitions divide, against loops."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.agents import transitions

BATCH, LENGTH = 2, 5


@given(
    properties.floats(BATCH, LENGTH),
    properties.floats(BATCH, LENGTH),
    properties.flags(BATCH, LENGTH),
    st.integers(1, 7),
)
def test_sums_end_with_the_episode_and_the_sequence(rewards, values, valid, n):
    rewards, discounts = rewards * valid, np.float32(0.5) * valid
    sums, products = transitions.n_step_sums(
        *map(tf.constant, (rewards, discounts, valid)), n
    )
    after = transitions.after_n_steps(tf.constant(values), tf.constant(valid), n)
    for b in range(BATCH):
        for t in range(LENGTH):
            last = t
            while (
                last + 1 < min(t + n, LENGTH) and valid[b, last] and valid[b, last + 1]
            ):
                last += 1
            steps = last - t + 1
            total = sum(rewards[b, t + i] * 0.5**i for i in range(steps))
            np.testing.assert_allclose(sums[b, t], total, 1e-4, 1e-4)
            assert products[b, t] == np.prod(discounts[b, t : last + 1])
            assert after[b, t] == values[b, last]
