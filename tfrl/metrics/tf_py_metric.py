"""Wraps a Python metric so that graphs can call it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.compilation.python_calls import graph_calls
from tfrl.metrics import py_metric as py_metric_lib
from tfrl.metrics import tf_metric


class TFPyMetric(tf_metric.TFStepMetric):
    """Calls a Python metric, with NumPy values, from TensorFlow.

    The Python metric keeps the state, and a checkpoint of either metric holds it. Every
    update leaves the graph, so prefer the metrics of `tf_metrics` if they suffice.
    """

    def __init__(
        self,
        py_metric: py_metric_lib.PyMetric,
        name: str | None = None,
        dtype: tf.DType = tf.float32,
    ) -> None:
        """Wraps `py_metric`, whose result is a scalar that `dtype` can hold."""
        super().__init__(name=name or py_metric.name, prefix=py_metric.prefix)
        self._py_metric = py_metric
        self._dtype = tf.as_dtype(dtype)
        self._ordered_calls = graph_calls.OrderedCalls()

    def call(self, trajectory: Any) -> Any:
        """Calls the Python metric with `trajectory`; returns `trajectory`."""

        def update(*flat: Any) -> None:
            self._py_metric(tf.nest.pack_sequence_as(trajectory, flat))

        self._ordered_calls(update, tf.nest.flatten(trajectory), [])
        return trajectory

    def result(self) -> tf.Tensor:
        """Returns the Python metric's result, `[]`."""
        [value] = self._ordered_calls(
            lambda: [self._py_metric.result()], [], [tf.TensorSpec(None, self._dtype)]
        )
        return tf.ensure_shape(value, [])

    def reset(self) -> None:
        """Resets the Python metric."""
        self._ordered_calls(self._py_metric.reset, [], [])
