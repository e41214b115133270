"""The buffer in NumPy against a list, also after a checkpoint."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.replay_buffers import PyUniformReplayBuffer
from tfrl.specs import array_spec

LEAVES = st.builds(
    lambda dtype, shape: array_spec.ArraySpec(shape, dtype),
    properties.DTYPES.filter(lambda dtype: dtype.isbuiltin == 1),
    properties.SHAPES,
)
SPECS = properties.nests(LEAVES, st.text("abc", min_size=1), may_be_empty=False)


def drawn_frames(data, spec, number):
    return [
        tf.nest.map_structure(
            lambda leaf: data.draw(properties.of_bits(leaf.dtype, leaf.shape)), spec
        )
        for _ in range(number)
    ]


def stacked(frames):
    return tf.nest.map_structure(lambda *leaves: np.stack(leaves), *frames)


def assert_same(got, expected):
    tf.nest.map_structure(properties.assert_same, got, expected)


@given(st.data(), SPECS, st.integers(1, 4), st.integers(1, 6), st.integers(0, 6))
def test_it_holds_the_last_frames_also_of_a_checkpoint(
    data, spec, capacity, number, more
):
    buffer = PyUniformReplayBuffer(spec, capacity)
    frames = drawn_frames(data, spec, number + more)
    for i, frame in enumerate(frames):
        if i == number:
            # What a checkpoint writes.
            states = [buffer._storage._state, buffer._state, buffer._random]
            buffer = PyUniformReplayBuffer(spec, capacity)
            others = [buffer._storage._state, buffer._state, buffer._random]
            for state, other in zip(states, others, strict=True):
                other.deserialize(state.serialize())
        buffer.add_batch(tf.nest.map_structure(lambda x: x[None], frame))
    held = frames[-capacity:]
    assert buffer.num_frames() == len(held)
    expected = tf.nest.map_structure(lambda x: x[None], stacked(held))
    assert_same(buffer.gather_all(), expected)


@given(st.integers(1, 6), st.integers(1, 12), st.integers(1, 4), st.integers(0, 99))
def test_a_window_is_consecutive_frames_that_it_holds(capacity, number, steps, seed):
    steps = min(steps, number, capacity)
    spec = array_spec.ArraySpec((), np.int64)
    buffer = PyUniformReplayBuffer(spec, capacity, seed=seed)
    for i in range(number):
        buffer.add_batch(np.array([i]))
    first = max(0, number - capacity)
    windows = buffer.get_next(9, steps)
    assert windows.min() >= first
    assert windows.max() < number
    np.testing.assert_array_equal(windows, windows[:, :1] + np.arange(steps))
    apart = buffer.get_next(9, steps, time_stacked=False)
    assert [len(frames) for frames in apart] == [9] * steps
