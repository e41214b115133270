"""What loops of on-policy agents do with the steps of a rollout."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import common


def clipped(action: Any, action_spec: Any) -> Any:
    """Returns a nest of actions, the continuous ones clipped to their specs' bounds."""
    return tf.nest.map_structure(
        lambda x, spec: (
            common.clip_to_spec(x, spec)
            if tensor_spec.is_continuous(spec) and tensor_spec.is_bounded(spec)
            else x
        ),
        action,
        action_spec,
    )


def with_reached(
    frames: trajectory.Trajectory, time_step: ts.TimeStep
) -> trajectory.Trajectory:
    """Returns frames `[T, B, ...]` and one with the time step reached, batch-major.

    Returns:
      Frames `[B, T + 1, ...]`. Of the last ones, the action and what follows it are
      those of the frames before, but for the step types.
    """
    # Not zeros: on processors with AVX, the XLA of TensorFlow 2.21 writes a constant
    # row that is appended to 64-bit numbers `[T, 4]` beyond the end of the buffer.
    last = accelerators.map_moved(lambda t: t[-1], frames)._replace(
        step_type=time_step.step_type,
        observation=time_step.observation,
        next_step_type=tf.where(
            time_step.is_last(), ts.StepType.FIRST, ts.StepType.MID
        ),
    )

    def join(column: tf.Tensor, reached: tf.Tensor) -> tf.Tensor:
        joined = tf.concat([column, reached[tf.newaxis]], axis=0)
        return tf.transpose(joined, [1, 0, *range(2, joined.shape.rank)])

    return accelerators.map_moved(join, frames, last)
