"""Applies a metric of single environments to a batch of environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.metrics import py_metric
from tfrl.trajectories import trajectory as traj
from tfrl.utils import nest_utils


class BatchedPyMetric(py_metric.PyStepMetric):
    """Keeps one metric for each member of a batch; its result is their aggregate.

    The metrics of `py_metrics` accept batches; this class is for metrics that do not.
    It aggregates the members' results with `metric_class.aggregate`, the mean by
    default. A member that has not finished an episode yet counts too.
    """

    def __init__(
        self,
        metric_class: type[py_metric.PyMetric],
        metric_args: Mapping[str, Any] | None = None,
        name: str | None = None,
        batch_size: int | None = None,
        dtype: Any = np.float32,
        prefix: str = "Metrics",
    ) -> None:
        """Creates a metric of `metric_class(**metric_args)` for each member.

        Args:
          metric_class: A class of metrics that take unbatched trajectories.
          metric_args: The keyword arguments of `metric_class`.
          name: The metric's name; None takes the name of the members.
          batch_size: The number of members; None takes the batch size of the first
            trajectory.
          dtype: The dtype of the result while the number of members is unknown.
          prefix: The first part of the summary tag.
        """
        self._metric_class = metric_class
        self._metric_args = dict(metric_args or {})
        super().__init__(
            name or metric_class(**self._metric_args).name,
            prefix=prefix,
        )
        self._dtype = dtype
        self._metrics: list[py_metric.PyMetric] = []
        if batch_size is not None:
            self.build(batch_size)

    def build(self, batch_size: int) -> None:
        """Makes a new metric for each of `batch_size` members."""
        self._metrics = [
            self._metric_class(**self._metric_args) for _ in range(batch_size)
        ]
        self.reset()

    def call(self, batched_trajectory: traj.Trajectory) -> None:
        """Updates each member's metric with its row of a trajectory `[B, ...]`.

        Raises:
          ValueError: If the batch size changes.
        """
        rows = nest_utils.unstack_nested_arrays(batched_trajectory)
        if not self._metrics:
            self.build(len(rows))
        if len(rows) != len(self._metrics):
            raise ValueError(
                f"{self.name}: the trajectory has a batch of {len(rows)}, but the "
                f"metric was made for, or first saw, {len(self._metrics)}; use one "
                "metric for each environment."
            )
        for metric, row in zip(self._metrics, rows, strict=True):
            metric(row)

    def reset(self) -> None:
        """Resets the metric of every member."""
        for metric in self._metrics:
            metric.reset()

    def result(self) -> Any:
        """Returns the aggregate of the members' results, 0 without members."""
        if not self._metrics:
            return np.zeros([], self._dtype)
        return self._metric_class.aggregate(self._metrics)

    @staticmethod
    def aggregate(metrics: Any) -> Any:
        """Raises NotImplementedError: batched metrics cannot be batched again."""
        raise NotImplementedError(
            "BatchedPyMetric.aggregate: got batched metrics, expected metrics of "
            "single environments; make one BatchedPyMetric for the whole batch."
        )

    def get_state(self) -> list[str]:
        """Returns the serialized state of each member's metric."""
        return [tf.compat.as_text(metric.serialize()) for metric in self._metrics]

    def set_state(self, state: list[str]) -> None:
        """Restores the state that `get_state` returned; makes the members' metrics."""
        self.build(len(state))
        for metric, text in zip(self._metrics, state, strict=True):
            metric.deserialize(text)
