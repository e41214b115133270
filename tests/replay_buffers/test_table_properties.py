"""Tables of rows against arrays of NumPy."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.replay_buffers import table as tables

LEAVES = st.builds(
    lambda dtype, shape: tf.TensorSpec(shape, dtype),
    st.sampled_from(
        [tf.float32, tf.float64, tf.int32, tf.int64, tf.uint8, tf.bool, tf.bfloat16]
    ),
    properties.SHAPES,
)
SPECS = properties.nests(LEAVES, st.text("abc", min_size=1), may_be_empty=False)


def drawn_rows(data, spec, number):
    """Draws so many rows of a nest of specs."""
    return tf.nest.map_structure(
        lambda leaf: data.draw(
            properties.of_bits(leaf.dtype.as_numpy_dtype, (number, *leaf.shape))
        ),
        spec,
    )


def assert_rows(table, expected):
    number = len(tf.nest.flatten(expected)[0])
    got = tf.nest.map_structure(lambda x: x.numpy(), table.read(tf.range(number)))
    tf.nest.map_structure(properties.assert_same, got, expected)


@given(st.data(), SPECS, st.integers(1, 3), st.integers(1, 4))
def test_blocks_of_any_bits_come_back(data, spec, size, blocks):
    table = tables.PackedTable(spec, size * blocks)
    expected = tf.nest.map_structure(
        lambda leaf: np.zeros((size * blocks, *leaf.shape), leaf.dtype.as_numpy_dtype),
        spec,
    )
    for block in data.draw(st.lists(st.integers(0, blocks - 1), max_size=4)):
        rows = drawn_rows(data, spec, size)
        table.write_block(block, tf.nest.map_structure(tf.constant, rows))

        def put(array, new, start=block * size):
            array[start : start + size] = new

        tf.nest.map_structure(put, expected, rows)
    assert_rows(table, expected)


@given(st.data(), SPECS, st.integers(1, 5))
def test_rows_of_any_bits_come_back(data, spec, capacity):
    table = tables.Table(spec, capacity)
    expected = tf.nest.map_structure(
        lambda leaf: np.zeros((capacity, *leaf.shape), leaf.dtype.as_numpy_dtype), spec
    )
    places = st.lists(st.integers(0, capacity - 1), min_size=1, unique=True)
    for rows in data.draw(st.lists(places, max_size=3)):
        values = drawn_rows(data, spec, len(rows))
        table.write(rows, tf.nest.map_structure(tf.constant, values))

        def put(array, new, rows=rows):
            array[rows] = new

        tf.nest.map_structure(put, expected, values)
    assert_rows(table, expected)
