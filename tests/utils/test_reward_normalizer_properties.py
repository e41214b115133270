"""The scale of rewards against a loop, however the steps are split."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.utils import reward_normalizer

BATCH, LENGTH = 2, 8


@given(
    st.data(),
    properties.floats(BATCH, LENGTH),
    properties.flags(BATCH, LENGTH),
    properties.flags(BATCH, LENGTH),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_rewards_are_divided_by_the_deviation_of_returns(
    data, rewards, is_first, mask, gamma
):
    normalizer = reward_normalizer.RewardNormalizer(BATCH, gamma, 0.0, 0.0)
    for part in properties.cut(data.draw, LENGTH):
        given_now = [x[:, part] for x in (rewards, is_first, mask)]
        if not given_now[0].size:
            continue
        if given_now[0].shape[1] == 1 and data.draw(st.booleans()):
            given_now = [x[:, 0] for x in given_now]
        normalizer.update(*map(tf.constant, given_now))
    returns = []
    for b in range(BATCH):
        total = 0.0
        for t in range(LENGTH):
            if mask[b, t]:
                total = rewards[b, t] + gamma * total * (not is_first[b, t])
                returns.append(total)
    deviation = np.std(np.float64(returns)) if returns else 0.0
    # Nearly equal returns differ by their roundings.
    if deviation > 1e-2 or not returns:
        expected = 1 / deviation if deviation else 1.0
        np.testing.assert_allclose(normalizer.scale(), expected, rtol=1e-3)
