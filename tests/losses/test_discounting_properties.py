"""Sums and shifts along rows against loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.losses import discounting

BATCH, LENGTH = 2, 5
VALUES = properties.floats(BATCH, LENGTH)
LENGTHS = st.lists(st.integers(0, LENGTH), min_size=BATCH, max_size=BATCH)
GAMMAS = st.sampled_from([0.0, 0.5, 1.0])


@given(VALUES, GAMMAS, st.integers(1, LENGTH + 2), LENGTHS)
def test_sums_end_with_each_rows_episode(values, gamma, n, lengths):
    got = discounting.discounted_future_sum_masked(values, gamma, n, lengths)
    expected = [
        [
            sum(
                gamma**i * float(values[b, t + i])
                for i in range(n)
                if t + i < lengths[b]
            )
            for t in range(LENGTH)
        ]
        for b in range(BATCH)
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)


@given(VALUES, GAMMAS, st.integers(0, LENGTH + 2), properties.floats(BATCH))
def test_values_are_those_of_n_steps_later(values, gamma, n, final):
    got = discounting.shift_values(values, gamma, n, final)
    expected = [
        [
            gamma**n * values[b, t + n]
            if t + n < LENGTH
            else gamma ** (LENGTH - t) * final[b]
            for t in range(LENGTH)
        ]
        for b in range(BATCH)
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)
