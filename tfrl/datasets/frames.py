"""Turns datasets of frames into transitions and sequences, and fills replay buffers.

A dataset of frames has `Trajectory`s without outer dimensions as elements, in the order
in which they were recorded, with a boundary after each whole episode.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import trace_counts
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import number_checks

# The number of frames that are read and added at a time.
_BLOCK = 1024


@tf.autograph.experimental.do_not_convert
def sequences(frames: tf.data.Dataset, num_steps: int) -> tf.data.Dataset:
    """Returns all windows of consecutive frames, `[num_steps, ...]`, which overlap.

    Windows may reach over the ends of episodes, as samples of replay buffers do; agents
    mask transitions between episodes. Shuffle and batch them for training.

    Args:
      frames: A dataset of frames.
      num_steps: The number of frames in a window, at least 1.
    """
    number_checks.check_sizes(num_steps=num_steps)
    empty = tf.nest.map_structure(
        lambda leaf: tf.zeros([num_steps, *leaf.shape], leaf.dtype), frames.element_spec
    )

    def shift(window: Any, *fields: Any) -> tuple[Any, Any]:
        window = tf.nest.map_structure(
            lambda past, now: tf.concat([past[1:], now[tf.newaxis]], axis=0),
            window,
            _trajectory(fields),
        )
        return window, window

    return frames.scan(empty, shift).skip(num_steps - 1)


@tf.autograph.experimental.do_not_convert
def transitions(frames: tf.data.Dataset) -> tf.data.Dataset:
    """Returns the steps of all episodes as `Transition`s, without outer dimensions.

    Boundaries, and frames whose next observation was not recorded, give no transition.

    Args:
      frames: A dataset of frames.
    """

    def convert(*fields: Any) -> trajectory.Transition:
        window = tf.nest.map_structure(lambda t: t[tf.newaxis], _trajectory(fields))
        return tf.nest.map_structure(
            lambda t: t[0, 0], trajectory.to_transition(window)
        )

    def is_valid(*fields: Any) -> tf.Tensor:
        transition = fields[0] if len(fields) == 1 else trajectory.Transition(*fields)
        return transition.time_step.step_type != ts.StepType.LAST

    return sequences(frames, 2).map(convert).filter(is_valid)


def fill(replay_buffer: replay_buffer_lib.ReplayBuffer, frames: tf.data.Dataset) -> int:
    """Adds all frames to a replay buffer, in order, and returns their number.

    Args:
      replay_buffer: A buffer with room for all frames. Its `batch_size` is 1 or None.
      frames: A dataset of frames that match the buffer's `data_spec`.

    Raises:
      ValueError: The buffer has a larger `batch_size`, or is too small for all frames.
    """
    if replay_buffer.batch_size not in (None, 1):
        raise ValueError(
            f"replay_buffer: got batch_size={replay_buffer.batch_size}, expected 1, "
            "since the episodes come one after another; make it with batch_size=1."
        )
    before, added = int(replay_buffer.num_frames()), 0
    if replay_buffer.works_in_graph:
        add = trace_counts.of_one_object(types.MethodType(_add_block, replay_buffer))
        plain, compiled = (
            tf.function(add, autograph=False, jit_compile=jit_compile)
            for jit_compile in (None, True)
        )
        for block in frames.batch(_BLOCK):
            number = len(block.step_type)
            # Compiled, a frame takes a fraction of the time; compiling takes a second.
            is_whole = number == _BLOCK and replay_buffer.supports_xla
            (compiled if is_whole else plain)(block)
            added += number
    else:
        for frame in frames.batch(1).as_numpy_iterator():
            replay_buffer.add_batch(frame)
            added += 1
    max_length = replay_buffer.max_length
    if max_length is not None and before + added > max_length:
        raise ValueError(
            f"replay_buffer: got max_length={max_length}, expected at least "
            f"{before + added}, room for all frames, since the first ones were "
            "overwritten; make it larger."
        )
    return added


def _add_block(replay_buffer: Any, block: trajectory.Trajectory) -> None:
    """Adds frames `[N, ...]` one by one, in a graph."""

    def add(i: tf.Tensor) -> tf.Tensor:
        replay_buffer.add_batch(
            tf.nest.map_structure(lambda t: t[i][tf.newaxis], block)
        )
        return i + 1

    number = tf.shape(block.step_type)[0]
    tf.while_loop(lambda i: i < number, add, [tf.constant(0)], parallel_iterations=1)


def episode_returns(frames: tf.data.Dataset) -> np.ndarray:
    """Returns the sums of the rewards of all whole episodes, float32 `[N]`.

    Args:
      frames: A dataset of frames with scalar rewards.
    """
    returns, total, whole = [], 0.0, False
    for block in frames.batch(_BLOCK).as_numpy_iterator():
        for step_type, next_step_type, reward in zip(
            block.step_type.tolist(),
            block.next_step_type.tolist(),
            block.reward.tolist(),
            strict=True,
        ):
            if step_type == ts.StepType.FIRST:
                total, whole = 0.0, True
            if step_type != ts.StepType.LAST:
                total += reward
                if whole and next_step_type == ts.StepType.LAST:
                    returns.append(total)
                    whole = False
    return np.array(returns, np.float32)


def _trajectory(fields: tuple[Any, ...]) -> trajectory.Trajectory:
    """Returns the nest that tf.data passed as one argument or one per field."""
    return fields[0] if len(fields) == 1 else trajectory.Trajectory(*fields)
