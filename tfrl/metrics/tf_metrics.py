"""Metrics over batched trajectories, for graphs and eager code.

Each metric is called with one step of a batched environment, `[B]` per field, and
counts the steps and episodes of all `B` members.
"""

from __future__ import annotations

import abc
import functools
from typing import Any

import tensorflow as tf

from tfrl.compilation import stored_values
from tfrl.metrics import tf_metric
from tfrl.metrics.episode_sums import EpisodeSums, total_reward
from tfrl.metrics.export_utils import log_metrics as log_metrics
from tfrl.metrics.tf_deque import TFDeque as TFDeque
from tfrl.trajectories import trajectory as traj
from tfrl.typing import types
from tfrl.utils import nest_utils


class _Count(tf_metric.TFStepMetric):
    """Base of metrics that count some of the steps."""

    _default_name: str
    # The name of the variable's attribute, which is also its key in checkpoints.
    _variable_name: str

    def __init__(
        self,
        name: str | None = None,
        prefix: str = "Metrics",
        dtype: tf.DType = tf.int64,
    ) -> None:
        """Creates the metric.

        Args:
          name: The name of the metric; None takes the class's name.
          prefix: The prefix of the summary's name.
          dtype: The dtype of the count.
        """
        super().__init__(self._default_name if name is None else name, prefix)
        self.dtype = dtype
        variable = stored_values.zeros([], dtype, self._variable_name)
        setattr(self, self._variable_name, variable)

    @property
    def _count(self) -> tf.Variable:
        return getattr(self, self._variable_name)

    @abc.abstractmethod
    def _counts(self, trajectory: traj.Trajectory) -> tf.Tensor:
        """Returns whether each step counts, bool `[B]`."""

    def call(self, trajectory: traj.Trajectory) -> traj.Trajectory:
        counts = tf.cast(self._counts(trajectory), self.dtype)
        self._count.assign_add(stored_values.to_stored(tf.reduce_sum(counts)))
        return trajectory

    def result(self) -> tf.Tensor:
        return stored_values.read(self._count, self.dtype)

    def reset(self) -> None:
        self._count.assign(0)


class EnvironmentSteps(_Count):
    """Counts the steps taken in the environment, without boundaries (resets)."""

    _default_name = "EnvironmentSteps"
    _variable_name = "environment_steps"
    environment_steps: tf.Variable

    def _counts(self, trajectory: traj.Trajectory) -> tf.Tensor:
        return tf.logical_not(trajectory.is_boundary())


class NumberOfEpisodes(_Count):
    """Counts the episodes that ended."""

    _default_name = "NumberOfEpisodes"
    _variable_name = "number_episodes"
    number_episodes: tf.Variable

    def _counts(self, trajectory: traj.Trajectory) -> tf.Tensor:
        return trajectory.is_episode_end()


class _EpisodeMetric(tf_metric.TFStepMetric):
    """Base of metrics that sum a number over each episode and keep the last sums."""

    _default_name: str

    def __init__(
        self,
        name: str | None = None,
        prefix: str = "Metrics",
        dtype: tf.DType = tf.float32,
        batch_size: int = 1,
        buffer_size: int = 10,
    ) -> None:
        """Creates the metric.

        Args:
          name: The name of the metric; None takes the class's name without "Metric".
          prefix: The prefix of the summary's name.
          dtype: The dtype of the result.
          batch_size: The number of environments.
          buffer_size: The number of latest episodes that the result covers.
        """
        name = self._default_name if name is None else name
        super().__init__(name=name, prefix=prefix)
        self._dtype = tf.as_dtype(dtype)
        self._sums = EpisodeSums(name, batch_size, buffer_size, self._dtype)
        self._buffer = self._sums.finished

    @abc.abstractmethod
    def _increment(self, trajectory: traj.Trajectory) -> tf.Tensor:
        """Returns this step's contribution to its episode's sum, `[B]`."""

    def call(self, trajectory: traj.Trajectory) -> traj.Trajectory:
        self.keep(self.advance(trajectory), trajectory.is_episode_end())
        return trajectory

    def advance(self, trajectory: traj.Trajectory) -> tf.Tensor:
        """Adds one step; returns the sums over the running episodes, `[B]`.

        `keep` must follow, after this step or after a number of them.
        """
        return self._sums.advance(trajectory, self._increment(trajectory))

    def keep(self, sums: tf.Tensor, is_finished: tf.Tensor) -> None:
        """Keeps the sums of finished episodes.

        Args:
          sums: What `advance` returned, `[B]`, or for some steps `[T, B]`.
          is_finished: Whether each step ended its episode, bool like `sums`.
        """
        self._sums.keep(sums, is_finished)

    def reset(self) -> None:
        self._sums.reset()


class _ReturnMetric(_EpisodeMetric):
    """Base of metrics over the undiscounted returns of the latest episodes.

    A vector reward or a nest of rewards is summed to one number;
    `AverageReturnMultiMetric` averages each number separately.
    """

    def _increment(self, trajectory: traj.Trajectory) -> tf.Tensor:
        return total_reward(trajectory.reward, self._dtype)


class AverageReturnMetric(_ReturnMetric):
    """Mean return of the last `buffer_size` episodes, 0 before the first ends."""

    _default_name = "AverageReturn"

    def result(self) -> tf.Tensor:
        """Returns the mean return, `[]`."""
        return self._buffer.mean()


class MaxReturnMetric(_ReturnMetric):
    """Highest return of the last `buffer_size` episodes, `dtype.min` before any."""

    _default_name = "MaxReturn"

    def result(self) -> tf.Tensor:
        """Returns the highest return, `[]`."""
        return self._buffer.max()


class MinReturnMetric(_ReturnMetric):
    """Lowest return of the last `buffer_size` episodes, `dtype.max` before any."""

    _default_name = "MinReturn"

    def result(self) -> tf.Tensor:
        """Returns the lowest return, `[]`."""
        return self._buffer.min()


class AverageEpisodeLengthMetric(_EpisodeMetric):
    """Mean length of the last `buffer_size` episodes, 0 before the first ends."""

    _default_name = "AverageEpisodeLength"

    def _increment(self, trajectory: traj.Trajectory) -> tf.Tensor:
        return tf.cast(tf.logical_not(trajectory.is_boundary()), self._dtype)

    def result(self) -> tf.Tensor:
        """Returns the mean length, `[]`."""
        return self._buffer.mean()


class ChosenActionHistogram(tf_metric.TFHistogramStepMetric):
    """Keeps the latest `buffer_size` actions, shown as a histogram.

    At a boundary the environment ignores the action, and so does the histogram.
    """

    def __init__(
        self,
        name: str = "ChosenActionHistogram",
        dtype: tf.DType = tf.int32,
        buffer_size: int = 100,
    ) -> None:
        """Creates the metric.

        Args:
          name: The name of the metric.
          dtype: The dtype of the actions.
          buffer_size: The number of latest actions to keep.
        """
        super().__init__(name=name)
        self._dtype = tf.as_dtype(dtype)
        self._buffer = TFDeque(buffer_size, self._dtype)

    def call(self, trajectory: traj.Trajectory) -> traj.Trajectory:
        """Adds the actions of a trajectory, one tensor `[B, ...]`.

        Raises:
          ValueError: If the action is a nest.
        """
        if tf.nest.is_nested(trajectory.action):
            raise ValueError(
                f"{self.name}: trajectory.action is the nest {trajectory.action}, "
                "expected one tensor; give the metric a trajectory whose action is "
                "replaced by one of its parts."
            )
        actions = tf.cast(trajectory.action, self._dtype)
        acted = tf.logical_not(trajectory.is_boundary())
        acted = tf.reshape(acted, [-1] + [1] * (actions.shape.rank - 1))
        acted = tf.broadcast_to(acted, tf.shape(actions))
        self._buffer.extend(tf.reshape(actions, [-1]), where=tf.reshape(acted, [-1]))
        return trajectory

    def result(self) -> tf.Tensor:
        """Returns the actions held, `[N]`, in no particular order."""
        return self._buffer.data

    def reset(self) -> None:
        """Forgets all actions."""
        self._buffer.clear()


class AverageReturnMultiMetric(tf_metric.TFMultiMetricStepMetric):
    """Mean return of the last `buffer_size` episodes for each of several rewards."""

    def __init__(
        self,
        reward_spec: types.NestedTensorSpec,
        name: str = "AverageReturnMultiMetric",
        prefix: str = "Metrics",
        dtype: tf.DType = tf.float32,
        batch_size: int = 1,
        buffer_size: int = 10,
    ) -> None:
        """Creates a metric for rewards of `reward_spec`, a nest of specs.

        In summaries each return has the name of its spec, or, if the spec has no name,
        the spec's path in the nest.
        """
        specs = nest_utils.flatten_with_joined_paths(reward_spec)
        super().__init__(
            name=name,
            prefix=prefix,
            metric_names=[spec.name or path or None for path, spec in specs],
        )
        self._sums = [
            EpisodeSums(name, batch_size, buffer_size, dtype, spec.shape)
            for _, spec in specs
        ]
        # Bound in functions, because tf.Module wraps containers that are attributes.
        self._pack = functools.partial(tf.nest.pack_sequence_as, reward_spec)
        self._check = functools.partial(
            nest_utils.assert_same_structure,
            nest2=reward_spec,
            message=f"{name}: trajectory.reward and reward_spec do not match",
        )

    def call(self, trajectory: traj.Trajectory) -> traj.Trajectory:
        """Adds the rewards of a trajectory, `[B, ...]` for each spec.

        Raises:
          TypeError, ValueError: If the rewards do not have the structure of the specs.
        """
        self._check(trajectory.reward)
        rewards = tf.nest.flatten(trajectory.reward)
        for sums, reward in zip(self._sums, rewards, strict=True):
            sums.add(trajectory, reward)
        return trajectory

    def result(self) -> Any:
        """Returns the mean returns, in the structure and shapes of `reward_spec`."""
        return self._pack([sums.finished.mean() for sums in self._sums])

    def reset(self) -> None:
        """Forgets all episodes."""
        for sums in self._sums:
            sums.reset()
