"""Draws from a sum tree against running sums of NumPy."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tfrl.replay_buffers import SumTree

SPAN, BLOCK = 7, 2
TREES = [SumTree(SPAN, BLOCK) for _ in range(2)]
# Their sums are exact, so that a draw has one right result.
VALUES = st.sampled_from([0.0, 0.25, 1.0, 2.0, 64.0])
FRACTIONS = st.lists(st.floats(0, 1, exclude_max=True), min_size=4, max_size=4)
# XLA goes another way.
compiled = tf.function(lambda *arguments: TREES[1].draw(*arguments), jit_compile=True)


@given(
    st.integers(0, 20),
    st.lists(VALUES, min_size=SPAN, max_size=SPAN).filter(any),
    st.lists(st.tuples(st.integers(0, SPAN - 1), VALUES, st.booleans()), max_size=4),
    FRACTIONS,
)
def test_a_draw_is_where_the_running_sum_passes_its_share(
    begin, values, changes, fractions
):
    expected = np.array(values)
    for tree in TREES:
        for variable in tree.variables:
            variable.assign(tf.zeros_like(variable))
        tree.write(begin + tf.range(SPAN, dtype=tf.int64), tf.constant(expected))
    if changes:
        places, new, keep = map(list, zip(*changes, strict=True))
        for tree in TREES:
            tree.write(
                tf.constant(places, tf.int64) + begin,
                tf.constant(new, tf.float64),
                tf.constant(keep),
            )
        kept = [(place, x) for place, x, is_kept in changes if is_kept]
        for place in {place for place, _ in kept}:
            expected[place] = max(x for where, x in kept if where == place)
    every = begin + tf.range(SPAN, dtype=tf.int64)
    np.testing.assert_array_equal(TREES[0].read(every), expected)
    if not expected.any():
        return
    ends = np.cumsum(expected)
    places = np.searchsorted(ends, np.array(fractions) * ends[-1], side="right")
    span = [tf.constant(x, tf.int64) for x in (begin, begin + SPAN)]
    for draw in (TREES[0].draw, compiled):
        got, its_values, total = draw(tf.constant(fractions, tf.float64), *span)
        assert float(total) == ends[-1]
        np.testing.assert_array_equal(got, begin + places)
        np.testing.assert_array_equal(its_values, expected[places])
