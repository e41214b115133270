"""Metrics over batched trajectories, for graphs and eager code.

Each is called with one step of a batched environment, `[B]` per field, and counts the
steps and episodes of all `B` members.
"""

from __future__ import annotations

import abc

import tensorflow as tf

from tfrl.metrics import tf_metric
from tfrl.metrics.tf_deque import TFDeque as TFDeque
from tfrl.trajectories import trajectory as traj


class EnvironmentSteps(tf_metric.TFStepMetric):
    """Counts the steps taken in the environment; boundaries (resets) are none."""

    def __init__(
        self,
        name: str = "EnvironmentSteps",
        prefix: str = "Metrics",
        dtype: tf.DType = tf.int64,
    ) -> None:
        super().__init__(name=name, prefix=prefix)
        self.dtype = dtype
        self.environment_steps = tf.Variable(0, dtype=dtype, name="environment_steps")

    def call(self, trajectory: traj.Trajectory) -> traj.Trajectory:
        steps = tf.cast(tf.logical_not(trajectory.is_boundary()), self.dtype)
        self.environment_steps.assign_add(tf.reduce_sum(steps))
        return trajectory

    def result(self) -> tf.Tensor:
        return tf.identity(self.environment_steps)

    def reset(self) -> None:
        self.environment_steps.assign(0)


class NumberOfEpisodes(tf_metric.TFStepMetric):
    """Counts the episodes that ended."""

    def __init__(
        self,
        name: str = "NumberOfEpisodes",
        prefix: str = "Metrics",
        dtype: tf.DType = tf.int64,
    ) -> None:
        super().__init__(name=name, prefix=prefix)
        self.dtype = dtype
        self.number_episodes = tf.Variable(0, dtype=dtype, name="number_episodes")

    def call(self, trajectory: traj.Trajectory) -> traj.Trajectory:
        ended = tf.cast(trajectory.is_last(), self.dtype)
        self.number_episodes.assign_add(tf.reduce_sum(ended))
        return trajectory

    def result(self) -> tf.Tensor:
        return tf.identity(self.number_episodes)

    def reset(self) -> None:
        self.number_episodes.assign(0)


class _EpisodeMetric(tf_metric.TFStepMetric):
    """A number summed over each episode, and the last `buffer_size` such sums."""

    def __init__(
        self,
        name: str,
        prefix: str = "Metrics",
        dtype: tf.DType = tf.float32,
        batch_size: int = 1,
        buffer_size: int = 10,
    ) -> None:
        super().__init__(name=name, prefix=prefix)
        self._dtype = tf.as_dtype(dtype)
        self._batch_size = int(batch_size)
        self._buffer = TFDeque(buffer_size, dtype)
        self._accumulator = tf.Variable(
            tf.zeros([self._batch_size], self._dtype), name="accumulator"
        )

    @abc.abstractmethod
    def _increment(self, trajectory: traj.Trajectory) -> tf.Tensor:
        """What this step adds to its episode's sum, `[B]`."""

    def call(self, trajectory: traj.Trajectory) -> traj.Trajectory:
        self._check_batch(trajectory.step_type.shape)
        so_far = tf.where(
            trajectory.is_first(),
            tf.zeros([], self._dtype),
            self._accumulator,
        )
        so_far += self._increment(trajectory)
        self._accumulator.assign(so_far)
        self._buffer.extend(so_far, where=trajectory.is_last())
        return trajectory

    def reset(self) -> None:
        self._buffer.clear()
        self._accumulator.assign(tf.zeros_like(self._accumulator))

    def _check_batch(self, shape: tf.TensorShape) -> None:
        if not shape.is_compatible_with([self._batch_size]):
            raise ValueError(
                f"{self.name}: trajectory.step_type has shape {shape}, but the metric "
                f"was made for steps of shape [{self._batch_size}]; pass the "
                "environment's batch_size to the metric, and no time dimension."
            )


class _ReturnMetric(_EpisodeMetric):
    """Undiscounted returns of the latest episodes; vector rewards are summed."""

    def _increment(self, trajectory: traj.Trajectory) -> tf.Tensor:
        reward = tf.cast(trajectory.reward, self._dtype)
        extra = list(range(1, reward.shape.rank))
        return tf.reduce_sum(reward, axis=extra) if extra else reward


class AverageReturnMetric(_ReturnMetric):
    """Mean return of the last `buffer_size` episodes, 0 before the first ends."""

    def __init__(
        self,
        name: str = "AverageReturn",
        prefix: str = "Metrics",
        dtype: tf.DType = tf.float32,
        batch_size: int = 1,
        buffer_size: int = 10,
    ) -> None:
        super().__init__(name, prefix, dtype, batch_size, buffer_size)

    def result(self) -> tf.Tensor:
        return self._buffer.mean()


class MaxReturnMetric(_ReturnMetric):
    """Highest return of the last `buffer_size` episodes, `dtype.min` before any."""

    def __init__(
        self,
        name: str = "MaxReturn",
        prefix: str = "Metrics",
        dtype: tf.DType = tf.float32,
        batch_size: int = 1,
        buffer_size: int = 10,
    ) -> None:
        super().__init__(name, prefix, dtype, batch_size, buffer_size)

    def result(self) -> tf.Tensor:
        return self._buffer.max()


class MinReturnMetric(_ReturnMetric):
    """Lowest return of the last `buffer_size` episodes, `dtype.max` before any."""

    def __init__(
        self,
        name: str = "MinReturn",
        prefix: str = "Metrics",
        dtype: tf.DType = tf.float32,
        batch_size: int = 1,
        buffer_size: int = 10,
    ) -> None:
        super().__init__(name, prefix, dtype, batch_size, buffer_size)

    def result(self) -> tf.Tensor:
        return self._buffer.min()


class AverageEpisodeLengthMetric(_EpisodeMetric):
    """Mean length of the last `buffer_size` episodes, 0 before the first ends."""

    def __init__(
        self,
        name: str = "AverageEpisodeLength",
        prefix: str = "Metrics",
        dtype: tf.DType = tf.float32,
        batch_size: int = 1,
        buffer_size: int = 10,
    ) -> None:
        super().__init__(name, prefix, dtype, batch_size, buffer_size)

    def _increment(self, trajectory: traj.Trajectory) -> tf.Tensor:
        return tf.cast(tf.logical_not(trajectory.is_boundary()), self._dtype)

    def result(self) -> tf.Tensor:
        return self._buffer.mean()
