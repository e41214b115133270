"""The interface of metrics in plain Python and NumPy."""

from __future__ import annotations

import abc
import base64
import json
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.metrics import tf_metric
from tfrl.trajectories import trajectory as traj
from tfrl.utils import numpy_storage, summaries

_logger = logging.getLogger(__name__)


class PyMetric(tf.train.experimental.PythonState):
    """A running statistic held in Python attributes.

    `tf.train.Checkpoint` saves and restores the state that `get_state` returns.
    """

    def __init__(self, name: str, prefix: str = "Metrics") -> None:
        """Creates a metric shown as `prefix/name` in logs and summaries."""
        self._name = name
        self._prefix = prefix

    @property
    def name(self) -> str:
        """The metric's name."""
        return self._name

    @property
    def prefix(self) -> str:
        """The first part of the metric's summary tag."""
        return self._prefix

    @abc.abstractmethod
    def call(self, *args: Any) -> None:
        """Updates the statistic."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Resets the statistic."""

    @abc.abstractmethod
    def result(self) -> Any:
        """Returns the current value of the statistic."""

    def get_state(self) -> Any:
        """Returns the state on which `result` depends, in a form that JSON can hold.

        A metric that keeps its whole state in `NumpyState` attributes need not override
        this method.
        """
        return {
            name: base64.b64encode(value.serialize()).decode()
            for name, value in vars(self).items()
            if isinstance(value, numpy_storage.NumpyState)
        }

    def set_state(self, state: Any) -> None:
        """Restores the state that `get_state` returned."""
        for name, text in state.items():
            getattr(self, name).deserialize(base64.b64decode(text))

    def __call__(self, *args: Any) -> Any:
        """Updates the statistic; returns the first argument, None without arguments."""
        self.call(*args)
        return args[0] if args else None

    def log(self) -> None:
        """Logs the result at level INFO."""
        _logger.info("%s = %s", self._tag, self.result())

    def tf_summaries(
        self,
        train_step: Any = None,
        step_metrics: Iterable[PyMetric | tf_metric.TFStepMetric] = (),
    ) -> list[Any]:
        """Writes scalar summaries; returns whether each of them was written.

        Args:
          train_step: The step of the summary `prefix/name`; None takes the step set by
            `tf.summary.experimental.set_step`.
          step_metrics: Metrics whose results serve as the step of further summaries,
            `prefix_vs_step_metric/name`. If this metric is among them, it is skipped.
        """
        result = self.result()
        written = [
            tf.summary.scalar(self._tag, result, step=summaries.as_step(train_step))
        ]
        prefix = f"{self._prefix}_" if self._prefix else ""
        for step_metric in step_metrics:
            if step_metric.name != self.name:
                step = summaries.as_step(step_metric.result())
                tag = f"{prefix}vs_{step_metric.name}/{self.name}"
                written.append(tf.summary.scalar(tag, result, step=step))
        return written

    @staticmethod
    def aggregate(metrics: Sequence[PyMetric]) -> np.floating:
        """Returns the mean of the results of several metrics of one class."""
        return np.mean([metric.result() for metric in metrics])

    def serialize(self) -> str:
        """Returns the state as text, for `tf.train.Checkpoint`."""
        return json.dumps(self.get_state())

    def deserialize(self, string_value: str | bytes) -> None:
        """Restores the state from the text that `serialize` returned."""
        self.set_state(json.loads(string_value))

    @property
    def _tag(self) -> str:
        return f"{self._prefix}/{self._name}" if self._prefix else self._name


class PyStepMetric(PyMetric):
    """A metric that is called with one step, `[B]` or unbatched, at a time."""

    @abc.abstractmethod
    def call(self, trajectory: traj.Trajectory) -> None:
        """Updates the statistic with a trajectory of NumPy values."""


PyMetricType = PyMetric
MetricType = PyMetric | tf_metric.TFStepMetric
