"""Functions of a rollout's steps for loops of on-policy agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import common

if TYPE_CHECKING:
    from tfrl.typing import types


def clipped(
    action: types.NestedTensor, action_spec: types.NestedTensorSpec
) -> types.NestedTensor:
    """Clips the continuous actions of a nest to the bounds of their specs."""
    return tf.nest.map_structure(
        lambda x, spec: (
            common.clip_to_spec(x, spec)
            if tensor_spec.is_continuous(spec) and tensor_spec.is_bounded(spec)
            else x
        ),
        action,
        action_spec,
    )


def with_next_step_types(
    frames: trajectory.Trajectory, time_step: ts.TimeStep
) -> trajectory.Trajectory:
    """Sets the next step types of successive frames.

    Args:
      frames: Frames `[T, B, ...]`.
      time_step: The time step after the last frames, `[B, ...]`.
    """

    def shift(step_type: tf.Tensor, reached: tf.Tensor) -> tf.Tensor:
        return tf.concat([step_type[1:], reached[tf.newaxis]], axis=0)

    return frames._replace(
        next_step_type=accelerators.moved(shift, frames.step_type, time_step.step_type)
    )


def batch_major(frames: trajectory.Trajectory) -> trajectory.Trajectory:
    """Returns frames `[T, B, ...]` as `[B, T, ...]`."""
    return accelerators.map_moved(common.transpose_batch_time, frames)


def with_reached(
    frames: trajectory.Trajectory, time_step: ts.TimeStep
) -> trajectory.Trajectory:
    """Appends a frame with the last time step to frames `[T, B, ...]`, batch-major.

    Returns:
      Frames `[B, T + 1, ...]`. The last frame of each row repeats the action, the
      policy info, the reward and the discount of the frame before it.
    """
    # These are not zeros, because on processors with AVX, the XLA of TensorFlow 2.21
    # writes a constant row that is appended to 64-bit numbers `[T, 4]` beyond the end
    # of the buffer.
    last = accelerators.map_moved(lambda t: t[-1], frames)._replace(
        step_type=time_step.step_type,
        observation=time_step.observation,
        next_step_type=tf.where(
            time_step.is_last(), ts.StepType.FIRST, ts.StepType.MID
        ),
    )

    def join(column: tf.Tensor, reached: tf.Tensor) -> tf.Tensor:
        joined = tf.concat([column, reached[tf.newaxis]], axis=0)
        return common.transpose_batch_time(joined)

    return accelerators.map_moved(join, frames, last)
