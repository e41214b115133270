"""Schedules of settings that change linearly during a run."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tfrl.algorithms import parts
from tfrl.utils.optimization import schedules

NUMBERS = st.floats(0, 10, width=32)


@given(NUMBERS, NUMBERS | st.none(), st.integers(1, 1000), st.integers(0, 2000))
def test_a_number_goes_linearly_from_the_first_to_the_last(first, last, updates, step):
    counter = tf.Variable(step, dtype=tf.int64)
    rate = schedules.follow("rate", parts.schedule(first, updates, last), counter)
    share = min(step / updates, 1.0)
    expected = first if last is None else first + (last - first) * share
    np.testing.assert_allclose(
        schedules.current_value(rate), expected, rtol=1e-4, atol=1e-4
    )
    # A variable is followed where it goes.
    counter.assign(updates)
    end = first if last is None else last
    np.testing.assert_allclose(schedules.current_value(rate), end, rtol=1e-4, atol=1e-5)
