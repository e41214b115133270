"""The buffer that stores each image once against a list of frames."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.replay_buffers import FrameBuffer, PyHashedReplayBuffer
from tfrl.specs import array_spec
from tfrl.trajectories import trajectory

SHAPE = (2, 1, 3)
SCALAR = array_spec.ArraySpec((), np.int32)
REAL = array_spec.ArraySpec((), np.float32)
# Few different images, so that many are equal.
STACKS = st.lists(st.integers(0, 3), min_size=SHAPE[-1], max_size=SHAPE[-1]).map(
    lambda numbers: np.broadcast_to(np.array(numbers, np.uint8), SHAPE)
)


@given(st.lists(STACKS | st.none(), max_size=12), st.integers(1, 5))
def test_it_holds_the_last_stacks_and_each_of_their_images_once(stacks, capacity):
    spec = trajectory.Trajectory(
        SCALAR, array_spec.ArraySpec(SHAPE, np.uint8), SCALAR, (), SCALAR, REAL, REAL
    )
    buffer = PyHashedReplayBuffer(spec, capacity)
    held, one = [], np.ones([1], np.int32)
    for stack in stacks:
        if stack is None:
            buffer.clear()
            held = []
            continue
        buffer.add_batch(
            trajectory.Trajectory(one, stack[None], one, (), one, REAL_1, REAL_1)
        )
        held = [*held, stack][-capacity:]
    expected = np.array(held, np.uint8).reshape(1, -1, *SHAPE)
    properties.assert_same(buffer.gather_all().observation, expected)
    assert len(buffer._frame_buffer) == len({x for stack in held for x in stack[0, 0]})


REAL_1 = np.ones([1], np.float32)


@given(st.lists(properties.arrays(), max_size=6))
def test_arrays_of_any_bits_come_back_by_their_keys(arrays):
    frames = FrameBuffer()
    keys = [frames.add_frame(array) for array in arrays]
    again = FrameBuffer()
    again.deserialize(frames.serialize())
    for buffer in (frames, again):
        for array, key in zip(arrays, keys, strict=True):
            got = buffer.decompress(np.array([key]), 0) if array.ndim else None
            if got is not None:
                properties.assert_same(got, array)
        buffer.on_delete(np.array(keys, np.int64))
        assert len(buffer) == 0
