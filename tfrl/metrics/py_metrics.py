"""Metrics over trajectories of NumPy values, batched or not.

They count the steps and episodes of all members of a batched environment, and learn the
batch size from the first trajectory if none is given.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any

import numpy as np
import tree

from tfrl.metrics import py_metric
from tfrl.trajectories import trajectory as traj
from tfrl.utils import nest_utils, numpy_storage


class NumpyDeque:
    """Keeps the last `maxlen` values in an array that serves as a ring buffer."""

    def __init__(self, maxlen: float, dtype: Any) -> None:
        """Creates an empty deque; `maxlen=np.inf` keeps every value.

        Raises:
          ValueError: If `maxlen` is less than 1.
        """
        if not maxlen >= 1:
            raise ValueError(
                f"maxlen: got {maxlen}, expected at least 1; np.inf keeps every value."
            )
        self._maxlen = maxlen
        self._buffer = np.zeros(10 if np.isinf(maxlen) else int(maxlen), dtype)
        self._start = 0
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def last(self) -> Any:
        """The value that was added last.

        Raises:
          RuntimeError: If the deque is empty.
        """
        if not self._length:
            raise RuntimeError(
                "NumpyDeque.last: the deque is empty; add a value first."
            )
        return self._buffer[(self._start + self._length - 1) % len(self._buffer)]

    def clear(self) -> None:
        """Empties the deque."""
        self._start = self._length = 0

    def add(self, value: Any) -> None:
        """Appends `value`, dropping the oldest if the deque is full."""
        if self._length == len(self._buffer) and np.isinf(self._maxlen):
            self._buffer = np.concatenate([self._buffer, np.zeros_like(self._buffer)])
        self._buffer[(self._start + self._length) % len(self._buffer)] = value
        if self._length < len(self._buffer):
            self._length += 1
        else:
            self._start = (self._start + 1) % len(self._buffer)

    def extend(self, values: Iterable[Any]) -> None:
        """Appends the values in order."""
        for value in values:
            self.add(value)

    def mean(self, dtype: Any = None) -> Any:
        """Returns the mean of the values held."""
        return np.mean(self._buffer[: self._length], dtype=dtype)

    def to_list(self) -> list[Any]:
        """Returns the values held, the oldest first."""
        return np.roll(self._buffer, -self._start)[: self._length].tolist()


class StreamingMetric(py_metric.PyStepMetric):
    """Base of metrics that average one number per episode over the last episodes."""

    def __init__(
        self,
        name: str = "StreamingMetric",
        buffer_size: float = 10,
        batch_size: int | None = None,
    ) -> None:
        """Creates a metric; `buffer_size=np.inf` averages over all episodes."""
        super().__init__(name)
        self._buffer = NumpyDeque(maxlen=buffer_size, dtype=np.float64)
        self._batch_size = batch_size
        self.reset()

    @abc.abstractmethod
    def _reset(self, batch_size: int) -> None:
        """Resets the sums over the running episodes."""

    @abc.abstractmethod
    def _batched_call(self, trajectory: traj.Trajectory) -> None:
        """Updates the metric with a trajectory whose fields are `[B, ...]`."""

    def add_to_buffer(self, values: Iterable[Any]) -> None:
        """Appends the numbers of finished episodes."""
        self._buffer.extend(values)

    @property
    def data(self) -> NumpyDeque:
        """The numbers of the latest finished episodes."""
        return self._buffer

    def reset(self) -> None:
        """Forgets all episodes."""
        self._buffer.clear()
        if self._batch_size:
            self._reset(self._batch_size)

    def result(self) -> np.float32:
        """Returns the mean, or 0 before the first episode ends."""
        return self._buffer.mean(np.float32) if self._buffer else np.float32(0)

    def call(self, trajectory: traj.Trajectory) -> None:
        """Updates the metric with a trajectory of one step, `[]` or `[B]`.

        Raises:
          ValueError: If the batch size changes.
        """
        trajectory = _batched(trajectory)
        batch_size = len(trajectory.step_type)
        if not self._batch_size:
            self._batch_size = batch_size
            self._reset(batch_size)
        elif batch_size != self._batch_size:
            raise ValueError(
                f"{self.name}: trajectory.step_type has a batch of {batch_size}, but "
                f"the metric was made for, or first saw, {self._batch_size}; use one "
                "metric for each environment."
            )
        self._batched_call(trajectory)

    def get_state(self) -> dict[str, Any]:
        """Returns the episodes' numbers, the batch size and the accumulators."""
        return {
            "episodes": self._buffer.to_list(),
            "batch_size": self._batch_size,
            "accumulators": super().get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state that `get_state` returned."""
        self._buffer.clear()
        self._buffer.extend(state["episodes"])
        self._batch_size = state["batch_size"]
        super().set_state(state["accumulators"])


class _AccumulatingMetric(StreamingMetric):
    """Base of streaming metrics that sum a number over each episode's steps."""

    _default_name: str

    def __init__(
        self,
        name: str | None = None,
        buffer_size: float = 10,
        batch_size: int | None = None,
    ) -> None:
        """Creates the metric.

        Args:
          name: The name of the metric; None takes the class's name without "Metric".
          buffer_size: The number of latest episodes that the result covers.
          batch_size: The number of environments; None takes it from the first call.
        """
        self._running = numpy_storage.NumpyState()
        name = self._default_name if name is None else name
        super().__init__(name, buffer_size=buffer_size, batch_size=batch_size)

    def _reset(self, batch_size: int) -> None:
        self._running.sums = np.zeros(batch_size, np.float64)

    @abc.abstractmethod
    def _increment(self, trajectory: traj.Trajectory) -> np.ndarray:
        """Returns this step's contribution to its episode's sum, `[B]`."""

    def _batched_call(self, trajectory: traj.Trajectory) -> None:
        sums = self._running.sums
        sums[trajectory.is_first()] = 0
        sums += self._increment(trajectory)
        self.add_to_buffer(sums[trajectory.is_episode_end()])


class AverageReturnMetric(_AccumulatingMetric):
    """Mean undiscounted return of the last `buffer_size` episodes.

    The numbers of a vector reward or of a nest of rewards are summed.
    """

    _default_name = "AverageReturn"

    def _increment(self, trajectory: traj.Trajectory) -> np.ndarray:
        rewards = map(np.asarray, tree.flatten(trajectory.reward))
        return np.sum([r.reshape(len(r), -1).sum(1) for r in rewards], axis=0)


class AverageEpisodeLengthMetric(_AccumulatingMetric):
    """Mean number of steps of the last `buffer_size` episodes."""

    _default_name = "AverageEpisodeLength"

    def _increment(self, trajectory: traj.Trajectory) -> np.ndarray:
        return ~trajectory.is_boundary()


class _Counter(py_metric.PyMetric):
    """Base of metrics whose state is one integer."""

    _default_name: str

    def __init__(self, name: str | None = None) -> None:
        """Creates the metric; by default the name is the class's without "Metric"."""
        super().__init__(self._default_name if name is None else name)
        self._count = 0

    def reset(self) -> None:
        self._count = 0

    def result(self) -> np.int64:
        return np.int64(self._count)

    def get_state(self) -> int:
        return self._count

    def set_state(self, state: int) -> None:
        self._count = state


class EnvironmentSteps(_Counter, py_metric.PyStepMetric):
    """Counts the steps taken in the environment, without boundaries (resets)."""

    _default_name = "EnvironmentSteps"

    def reset(self, environment_steps: int = 0) -> None:
        """Sets the count to `environment_steps`."""
        self._count = int(environment_steps)

    def call(self, trajectory: traj.Trajectory) -> None:
        """Adds the number of steps in `trajectory` that are not boundaries."""
        self._count += int(np.sum(~trajectory.is_boundary()))


class NumberOfEpisodes(_Counter, py_metric.PyStepMetric):
    """Counts the episodes that ended."""

    _default_name = "NumberOfEpisodes"

    def call(self, trajectory: traj.Trajectory) -> None:
        """Adds the number of episodes that end in `trajectory`."""
        self._count += int(np.sum(trajectory.is_episode_end()))


class CounterMetric(_Counter):
    """Counts its calls, for example iterations."""

    _default_name = "Counter"

    def call(self) -> None:
        """Adds 1."""
        self._count += 1


def _batched(trajectory: traj.Trajectory) -> traj.Trajectory:
    """Adds the outer dimension to an unbatched trajectory's fields."""
    if np.ndim(trajectory.step_type):
        return trajectory
    return nest_utils.batch_nested_array(trajectory)
