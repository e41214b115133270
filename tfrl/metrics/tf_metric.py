"""The interface of metrics that live in a TensorFlow graph."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import context, trace_counts, variable_substitution
from tfrl.utils import summaries


class TFStepMetric(tf.Module, abc.ABC):
    """A running statistic over trajectories, held in `tf.Variable`s.

    Subclasses implement `call`, `result` and `reset` with TensorFlow operations. The
    metric is called with one batched step at a time, so it serves as an observer of any
    driver. Its variables are tracked by `tf.train.Checkpoint`.
    """

    def __init__(self, name: str, prefix: str = "Metrics") -> None:
        """Creates a metric shown as `prefix/name` in summaries."""
        super().__init__(name=name)
        self._prefix = prefix
        # No metric here branches on a tensor, and AutoGraph's conversion is slow.
        autograph = not context.is_of_this_package(type(self))
        call = trace_counts.of_one_object(self.call)
        self._call_function = tf.function(call, autograph=autograph)
        # Traced separately, because a metric may run other operations under XLA.
        self._compiled_call_function = tf.function(call, autograph=autograph)

    @property
    def prefix(self) -> str:
        """The first part of the metric's summary tag."""
        return self._prefix

    @abc.abstractmethod
    def call(self, trajectory: Any) -> Any:
        """Updates the statistic with `trajectory` and returns it."""

    @abc.abstractmethod
    def result(self) -> Any:
        """Returns the current value of the statistic."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Forgets everything seen."""

    def init_variables(self) -> None:
        """Sets the variables to their first values, as `reset` does."""
        self.reset()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Updates the statistic; returns its argument, so that calls can be chained.

        `call` runs as a tf.function, so it may branch on tensors with Python's `if`;
        called from another graph, it becomes part of that graph at no cost.
        """
        if variable_substitution.active():
            return self.call(*args, **kwargs)
        if context.in_xla_graph():
            return self._compiled_call_function(*args, **kwargs)
        return self._call_function(*args, **kwargs)

    def tf_summaries(
        self,
        train_step: Any = None,
        step_metrics: Iterable[TFStepMetric] = (),
    ) -> list[Any]:
        """Writes summaries; returns whether each of them was written.

        Args:
          train_step: The step of the summary `prefix/name`; with None, this summary is
            not written.
          step_metrics: Metrics whose results serve as the step of further summaries,
            `prefix_vs_step_metric/name`. If this metric is among them, it is skipped.
        """
        written = []
        if train_step is not None:
            tag = f"{self._prefix}/{self.name}" if self._prefix else self.name
            written += self.write_summaries(tag, train_step)
        prefix = f"{self._prefix}_" if self._prefix else ""
        for step_metric in step_metrics:
            if step_metric.name != self.name:
                tag = f"{prefix}vs_{step_metric.name}/{self.name}"
                written += self.write_summaries(tag, step_metric.result())
        return written

    def write_summaries(self, tag: str, step: Any) -> list[Any]:
        """Writes the result, a scalar, as `tag` at `step` to the default writer."""
        return [tf.summary.scalar(tag, self.result(), step=summaries.as_step(step))]


class TFHistogramStepMetric(TFStepMetric):
    """Base of metrics whose result is a vector `[N]`, shown as a histogram."""

    def write_summaries(self, tag: str, step: Any) -> list[Any]:
        """Writes a histogram of the result as `tag` at `step`."""
        return [tf.summary.histogram(tag, self.result(), step=summaries.as_step(step))]


class TFMultiMetricStepMetric(TFStepMetric):
    """Base of metrics whose result is a nest, shown as one scalar for each number."""

    def __init__(
        self,
        name: str,
        prefix: str = "Metrics",
        metric_names: Sequence[str | None] = (),
    ) -> None:
        """Creates a metric shown as `prefix/name/metric_name` in summaries.

        Args:
          name: The metric's name.
          prefix: The first part of the summary tags.
          metric_names: A name for each number of the result, a name for each leaf, or a
            single name for all. Numbers that share a name are counted: `Reward0`,
            `Reward1`. Without a name, the i-th number is called `Metric` and i.
        """
        super().__init__(name=name, prefix=prefix)
        self._metric_names = tuple(metric_names)

    @property
    def metric_names(self) -> tuple[str | None, ...]:
        """The names given to the constructor."""
        return self._metric_names

    def write_summaries(self, tag: str, step: Any) -> list[Any]:
        """Writes every number of the result as `tag/metric_name` at `step`."""
        step = summaries.as_step(step)
        leaves = tf.nest.flatten(self.result())
        numbers = [n for leaf in leaves for n in tf.unstack(tf.reshape(leaf, [-1]))]
        names = self._number_names([leaf.shape for leaf in leaves])
        return [
            tf.summary.scalar(f"{tag}/{name}", number, step=step)
            for name, number in zip(names, numbers, strict=True)
        ]

    def _number_names(self, shapes: Sequence[tf.TensorShape]) -> list[str]:
        given, names = self._metric_names, []
        sizes = [shape.num_elements() for shape in shapes]
        if len(given) == sum(sizes):
            names = list(given)
        elif len(given) == len(shapes):
            for name, shape, size in zip(given, shapes, sizes, strict=True):
                counted = [name if name is None else f"{name}{i}" for i in range(size)]
                names += counted if shape.rank else [name]
        else:
            name = given[0] if len(given) == 1 else None
            names = [name and f"{name}{i}" for i in range(sum(sizes))]
        return [name or f"Metric{i}" for i, name in enumerate(names)]
