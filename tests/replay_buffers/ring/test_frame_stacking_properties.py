"""Stacks of frames come back as wrappers made them, wherever episodes begin."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tfrl.replay_buffers import FrameStacking, TFUniformReplayBuffer
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

FRAMES, LENGTH, STEPS = 3, 5, 2


def _buffer(padding):
    scalar, real = tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float32)
    stack = tf.TensorSpec([2, FRAMES], tf.uint8)
    spec = trajectory.Trajectory(scalar, stack, scalar, (), scalar, real, real)
    row_format = FrameStacking(FRAMES, padding=padding)
    return TFUniformReplayBuffer(spec, 1, LENGTH, row_format=row_format)


# They are traced once, and cleared by each example.
BUFFERS = {padding: _buffer(padding) for padding in ("first", "zeros")}


@pytest.mark.parametrize("padding", BUFFERS)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=2, max_size=12))
def test_stacks_come_back(padding, steps):
    buffer = BUFFERS[padding]
    buffer.clear()
    stacks, numbers = [], []
    for i, (number, begins) in enumerate(steps):
        frame = np.full(2, number, np.uint8)
        if begins or not i:
            fill = frame if padding == "first" else np.zeros_like(frame)
            stack = np.stack([fill] * (FRAMES - 1) + [frame], -1)
            step_type = ts.StepType.FIRST
        else:
            stack = np.concatenate([stacks[-1][:, 1:], frame[:, None]], -1)
            step_type = ts.StepType.MID
        stacks.append(stack)
        numbers.append(i)
        one = np.ones(1, np.int32)
        real = np.ones(1, np.float32)
        buffer.add_batch(
            trajectory.Trajectory(
                step_type[None], stack[None], one * i, (), one, real, real
            )
        )
    np.testing.assert_array_equal(
        buffer.gather_all().observation[0], np.stack(stacks[-LENGTH:])
    )
    windows, _ = buffer.sample(6, STEPS, seed=tf.constant([len(steps), 3]))
    for number, stack in zip(
        windows.action.numpy().ravel(),
        windows.observation.numpy().reshape(-1, 2, FRAMES),
        strict=True,
    ):
        np.testing.assert_array_equal(stack, stacks[number])
