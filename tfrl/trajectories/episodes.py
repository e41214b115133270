"""Finds the episodes in rows of frames, `[B, T, ...]`.

A row may hold several episodes. Frame `t + 1` follows frame `t` only if
`next_step_type[t] == step_type[t + 1]`. Otherwise the row is *cut* between them, by a
resumed run or by a reset in mid-episode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.trajectories import time_step as ts

if TYPE_CHECKING:
    from tfrl.trajectories.trajectory import Trajectory


def follows(frames: Trajectory) -> tf.Tensor:
    """Returns whether frame `t + 1` follows frame `t`, bool `[B, T - 1]`."""
    before = accelerators.comparable(frames.next_step_type)
    after = accelerators.comparable(frames.step_type)
    return tf.equal(before[:, :-1], after[:, 1:])


def is_cut(frames: Trajectory) -> tf.Tensor:
    """Returns whether the row is cut after each frame, bool `[B, T]`.

    The row's end is not a cut.
    """
    return tf.pad(~follows(frames), [[0, 0], [0, 1]])


def in_complete_episode(frames: Trajectory) -> tf.Tensor:
    """Returns 1.0 for each frame whose episode reaches its end, float32 `[B, T]`.

    Each row is divided into segments, which end at an episode's last frame and at every
    cut; a segment counts if its last frame ends an episode.
    """
    ends_episode = frames.is_last()
    dtype = accelerators.index_dtype()
    ends_segment = tf.cast(ends_episode | is_cut(frames), dtype)
    segment = tf.cumsum(ends_segment, axis=1, exclusive=True)
    batch_size, length = tf.unstack(tf.shape(segment))
    segment += tf.cast(tf.range(batch_size)[:, tf.newaxis] * length, dtype)
    complete = tf.math.unsorted_segment_max(
        tf.cast(ends_episode, tf.int32), segment, batch_size * length
    )
    inside = tf.cast(tf.gather(complete, segment), tf.bool)
    return tf.cast(inside & ~frames.is_boundary(), tf.float32)


def is_padding(frames: Trajectory) -> tf.Tensor:
    """Returns whether each frame is padding, bool `[B, T]`.

    Frames of zeros have step types FIRST and FIRST, and the padding of `FixedLength`
    has LAST and LAST. Steps of an environment never have these step types.
    """
    return accelerators.equal(frames.step_type, frames.next_step_type) & ~(
        accelerators.equal(frames.step_type, ts.StepType.MID)
    )


def count(frames: Trajectory) -> tf.Tensor:
    """Returns the number of episodes that end in the frames, float32 `[]`."""
    return tf.reduce_sum(tf.cast(frames.is_episode_end(), tf.float32))


def last_observation_follows(frames: Trajectory) -> tf.Tensor:
    """Returns whether each frame ends an episode whose last observation is known.

    The last observation is in the next frame, which must be a boundary. At a
    truncation, agents bootstrap the value of this observation.

    Returns:
      Bool `[B, T]`; False at the row's last frame, because no frame follows it.
    """
    followed = tf.pad(frames.is_boundary()[:, 1:], [[0, 0], [0, 1]])
    return frames.is_last() & followed


def keep_first(frames: Trajectory, num_episodes: int) -> Trajectory:
    """Marks all episodes but the first `num_episodes` of each row as unfinished.

    Agents that learn from whole episodes mask unfinished episodes. Padding does not
    change.

    Args:
      frames: Frames `[B, T, ...]`.
      num_episodes: The number of episodes to keep in each row.
    """
    ends = tf.cast(frames.is_episode_end(), accelerators.index_dtype())
    finished_before = tf.cumsum(ends, axis=1, exclusive=True)
    kept = (finished_before < num_episodes) | is_padding(frames)
    return frames._replace(
        next_step_type=tf.where(kept, frames.next_step_type, ts.StepType.MID)
    )


def append(frames: Trajectory, frame: Trajectory) -> Trajectory:
    """Returns `frames`, `[B, T, ...]`, with `frame`, `[B, ...]`, appended."""
    return accelerators.map_moved(
        lambda row, last: tf.concat([row, last[:, tf.newaxis]], axis=1), frames, frame
    )


def put(frames: Trajectory, position: tf.Tensor, frame: Trajectory) -> Trajectory:
    """Returns `frames` with the frame at `position` of each row replaced by `frame`.

    Args:
      frames: Frames `[B, T, ...]`.
      position: An integer scalar; if it is not in `[0, T)`, nothing is replaced.
      frame: A frame of each row, `[B, ...]`.
    """

    def replace(row: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        length = tf.shape(row)[1]
        here = tf.range(length) == tf.cast(position, tf.int32)
        here = tf.reshape(here, [1, length, *[1] * (row.shape.rank - 2)])
        new = accelerators.moved(lambda t: t[:, tf.newaxis], new)
        return tf.where(here, new, row)

    return tf.nest.map_structure(replace, frames, frame)
