"""Where the episodes are in rows of frames, and statistics over them."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory


def is_cut(frames: trajectory.Trajectory) -> tf.Tensor:
    """Whether the frame after each one, if any, belongs to something else."""
    cut = frames.next_step_type[:, :-1] != frames.step_type[:, 1:]
    return tf.pad(cut, [[0, 0], [0, 1]])


def in_complete_episode(frames: trajectory.Trajectory) -> tf.Tensor:
    """1.0 for each frame whose episode reaches its end, float32 `[B, T]`.

    Each row is divided into segments, which end at an episode's last frame and at every
    cut; a segment counts if its last frame ends an episode.
    """
    ends_episode = frames.is_last()
    ends_segment = tf.cast(ends_episode | is_cut(frames), tf.int32)
    segment = tf.cumsum(ends_segment, axis=1, exclusive=True)
    batch_size, length = tf.unstack(tf.shape(segment))
    segment += tf.range(batch_size)[:, tf.newaxis] * length
    complete = tf.math.unsorted_segment_max(
        tf.cast(ends_episode, tf.int32), segment, batch_size * length
    )
    inside = tf.cast(tf.gather(complete, segment), tf.bool)
    return tf.cast(inside & ~frames.is_boundary(), tf.float32)


def is_padding(frames: trajectory.Trajectory) -> tf.Tensor:
    """Whether each frame fills up a row, and shows no step of an environment.

    Nothing leads from a FIRST step to another, as in frames of zeros, or from a LAST
    step to another, as behind the end of an episode of fixed length.
    """
    return (frames.step_type == frames.next_step_type) & ~(
        frames.step_type == ts.StepType.MID
    )


def count(frames: trajectory.Trajectory) -> tf.Tensor:
    """How many episodes end in the frames, float32 `[]`.

    Raises:
      tf.errors.InvalidArgumentError: none does.
    """
    num_episodes = tf.reduce_sum(tf.cast(frames.is_episode_end(), tf.float32))
    tf.debugging.assert_greater(
        num_episodes,
        0.0,
        message=(
            "experience: REINFORCE learns from whole episodes, and none of this "
            "experience is complete (no next_step_type is LAST); collect until an "
            "episode ends, in a buffer that holds all of it."
        ),
    )
    return num_episodes


def normalize(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Brings the values under the mask to mean 0 and standard deviation 1."""
    count = tf.reduce_sum(mask)
    mean = tf.reduce_sum(tf.math.multiply_no_nan(values, mask)) / count
    squares = tf.math.squared_difference(values, mean)
    variance = tf.reduce_sum(tf.math.multiply_no_nan(squares, mask)) / count
    return (values - mean) / (tf.sqrt(variance) + np.finfo(np.float32).eps)
