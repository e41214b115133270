"""The interface of metrics that live in a TensorFlow graph."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tfrl.utils import summaries


class TFStepMetric(tf.Module, abc.ABC):
    """A running statistic over trajectories, held in `tf.Variable`s.

    Subclasses write `call`, `result` and `reset` with TensorFlow operations. The
    metric is called with one batched step at a time, so it serves as an observer of any
    driver. Its variables are tracked by `tf.train.Checkpoint`.
    """

    def __init__(self, name: str, prefix: str = "Metrics") -> None:
        """Creates a metric shown as `prefix/name` in summaries."""
        super().__init__(name=name)
        self._prefix = prefix
        self._call_function = tf.function(self.call)

    @property
    def prefix(self) -> str:
        """The first part of the metric's summary tag."""
        return self._prefix

    @abc.abstractmethod
    def call(self, trajectory: Any) -> Any:
        """Updates the statistic with `trajectory` and returns it."""

    @abc.abstractmethod
    def result(self) -> Any:
        """Returns the value of the statistic now."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Forgets everything seen."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Updates the statistic; returns its argument, so that calls can be chained.

        `call` runs as a tf.function, so it may branch on tensors with Python's `if`;
        called from another graph it becomes part of that one at no cost.
        """
        return self._call_function(*args, **kwargs)

    def tf_summaries(
        self,
        train_step: Any = None,
        step_metrics: Iterable[TFStepMetric] = (),
    ) -> list[Any]:
        """Writes scalar summaries to the default writer; returns what each write did.

        Args:
          train_step: the step of the summary `prefix/name`, which is left out if None.
          step_metrics: other metrics to plot this one against, as
            `prefix_vs_step_metric/name`; the metric itself is skipped among them.
        """
        result = self.result()
        written = []
        if train_step is not None:
            tag = f"{self._prefix}/{self.name}" if self._prefix else self.name
            written.append(
                tf.summary.scalar(tag, result, step=summaries.as_step(train_step))
            )
        prefix = f"{self._prefix}_" if self._prefix else ""
        for step_metric in step_metrics:
            if step_metric.name != self.name:
                step = summaries.as_step(step_metric.result())
                tag = f"{prefix}vs_{step_metric.name}/{self.name}"
                written.append(tf.summary.scalar(tag, result, step=step))
        return written
