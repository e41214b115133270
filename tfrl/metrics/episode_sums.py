"""Sums of values over the episodes of a batched environment, in variables."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.compilation import stored_values
from tfrl.losses import masking
from tfrl.metrics.tf_deque import TFDeque
from tfrl.trajectories import trajectory as traj
from tfrl.typing import types
from tfrl.utils import number_checks


class EpisodeSums(tf.Module):
    """Sums values over each member's running episode, and keeps finished sums.

    Attributes:
      finished: The `TFDeque` of the sums over the latest finished episodes.
    """

    def __init__(
        self,
        owner: str,
        batch_size: int,
        buffer_size: int,
        dtype: tf.DType,
        shape: types.Shape = (),
    ) -> None:
        """Creates sums for values of `shape` and `dtype`; errors name `owner`."""
        super().__init__(name=owner)
        self._owner = owner
        number_checks.check_sizes(batch_size=batch_size)
        self._batch_size = int(batch_size)
        self._dtype = tf.as_dtype(dtype)
        self._shape = tf.TensorShape(shape)
        self.finished = TFDeque(buffer_size, dtype, shape)
        self._running = stored_values.zeros(
            [self._batch_size, *self._shape], self._dtype, "accumulator"
        )

    def add(self, trajectory: traj.Trajectory, values: tf.Tensor) -> None:
        """Adds one step's `values`, `[B, ...]`, and keeps the sums that it finishes.

        Raises:
          ValueError: See `advance`.
        """
        self.keep(self.advance(trajectory, values), trajectory.is_episode_end())

    def advance(self, trajectory: traj.Trajectory, values: tf.Tensor) -> tf.Tensor:
        """Adds one step's `values`, `[B, ...]`, to the episodes of a trajectory.

        Returns:
          The sums over the running episodes, `[B, ...]`, for `keep`.

        Raises:
          ValueError: If the batch size or the shape differs from the constructor's.
        """
        self._check("trajectory.step_type", trajectory.step_type, tf.TensorShape([]))
        self._check("the value of a step", values, self._shape)
        goes_on = ~trajectory.is_first()
        goes_on = tf.reshape(goes_on, [self._batch_size] + [1] * self._shape.rank)
        so_far = masking.masked(stored_values.read(self._running, self._dtype), goes_on)
        so_far += tf.cast(values, self._dtype)
        stored_values.assign(self._running, so_far)
        return so_far

    def keep(self, sums: tf.Tensor, is_finished: tf.Tensor) -> None:
        """Keeps the sums of finished episodes.

        Args:
          sums: What `advance` returned, `[B, ...]`, or for some steps `[T, B, ...]`.
          is_finished: Whether each of the steps ended its episode, bool `[B]` or
            `[T, B]`.
        """
        rows = tf.reshape(sums, [-1, *self._shape])
        self.finished.extend(rows, where=tf.reshape(is_finished, [-1]))

    def reset(self) -> None:
        """Forgets everything."""
        self.finished.clear()
        self._running.assign(tf.zeros_like(self._running))

    def _check(self, what: str, value: tf.Tensor, inner: tf.TensorShape) -> None:
        expected = tf.TensorShape([self._batch_size]).concatenate(inner)
        if not value.shape.is_compatible_with(expected):
            raise ValueError(
                f"{self._owner}: {what} has shape {value.shape}, but the metric was "
                f"made for steps of shape {expected.as_list()}; pass the environment's "
                "batch_size (and reward spec) to the metric, and no time dimension."
            )


def total_reward(reward: Any, dtype: tf.DType) -> tf.Tensor:
    """Sums a nest of rewards `[B, ...]` for each member; returns `[B]` of `dtype`."""

    def total(part: tf.Tensor) -> tf.Tensor:
        part = tf.cast(part, dtype)
        extra = list(range(1, part.shape.rank))
        return tf.reduce_sum(part, axis=extra) if extra else part

    return tf.add_n([total(part) for part in tf.nest.flatten(reward)])
