"""The uniform buffer against lists of the frames that were added."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.replay_buffers import TFUniformReplayBuffer

SPEC = (tf.TensorSpec([], tf.int64, "id"), {"x": tf.TensorSpec([2], tf.float32)})
LENGTH, ENVIRONMENTS, STEPS = 5, 2, 3
# It is traced once, and cleared by each example.
BUFFER = TFUniformReplayBuffer(SPEC, ENVIRONMENTS, LENGTH)
# Numbers of frames to add; 0 clears the buffer.
ADDITIONS = st.lists(st.integers(0, 2 * LENGTH), max_size=4)


def refill(buffer, additions):
    """Adds frames to an empty buffer; returns those that it should hold, `[T, B]`.

    The frame of number `i` since the buffer was cleared is `100 k + i`, or in the
    second environment `1000 + 100 k + i`, with another `k` each time.
    """
    buffer.clear()
    held, first = [], 0
    for number in additions:
        if number == 0:
            buffer.clear()
            held, first = [], first + 100
        for _ in range(number):
            count = 1 + held[-1][0] if held else first
            frame = np.array([count, 1000 + count])
            buffer.add_batch(items_of(frame))
            held = [*held, frame][-LENGTH:]
    return np.array(held, np.int64).reshape(-1, ENVIRONMENTS)


def items_of(frame):
    """The items `[...]` of the frames of these numbers."""
    return frame, {"x": np.stack([frame, -frame], -1).astype(np.float32)}


def assert_items(got, numbers):
    tf.nest.map_structure(np.testing.assert_array_equal, got, items_of(numbers))


@given(ADDITIONS)
def test_it_holds_the_last_frames_of_each_environment(additions):
    held = refill(BUFFER, additions)
    assert int(BUFFER.num_frames()) == held.size
    assert_items(BUFFER.gather_all(), held.T)


@given(ADDITIONS, st.integers(0, 2**31))
def test_a_window_is_consecutive_frames_that_it_holds(additions, seed):
    held = refill(BUFFER, [*additions, STEPS])
    items, info = BUFFER.sample(16, STEPS, seed=tf.constant([seed, 7]))
    numbers = items[0].numpy()
    assert_items(items, numbers)
    np.testing.assert_array_equal(info.ids, numbers % 100)
    windows = np.lib.stride_tricks.sliding_window_view(held, STEPS, 0)
    windows = {*map(tuple, windows.reshape(-1, STEPS).tolist())}
    assert {*map(tuple, numbers.tolist())} <= windows
    np.testing.assert_allclose(info.probabilities, 1 / len(windows), 1e-6)


@properties.fewer(0.5)
@given(ADDITIONS, st.integers(1, 4), st.integers(1, 6), st.booleans())
def test_a_pass_in_order_gives_each_window_once(additions, steps, shift, drops):
    buffer = TFUniformReplayBuffer(
        SPEC,
        ENVIRONMENTS,
        LENGTH,
        dataset_window_shift=shift,
        dataset_drop_remainder=drops,
    )
    held = refill(buffer, [*additions, steps])
    least = steps if drops else 1
    dataset = buffer.as_dataset(num_steps=steps, single_deterministic_pass=True)
    got = [items for items, _ in dataset.as_numpy_iterator()]
    assert [numbers.tolist() for numbers, _ in got] == [
        held[start : start + steps, b].tolist()
        for b in range(ENVIRONMENTS)
        for start in range(0, len(held) - least + 1, shift)
    ]
    for items in got:
        assert_items(items, items[0])
