"""The rows of a run's log, for metrics.csv, TensorBoard and the user's loggers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfrl.eval import evaluate
from tfrl.loggers import aggregators, base, csv, filters, tf_summary
from tfrl.train import loop as loop_lib
from tfrl.train import run_directory


class RunLog:
    """Collects the numbers of a run between two rows, and writes the rows.

    Attributes:
      seconds: The seconds of training so far, for checkpoints.
      loss: The mean loss since the last row, for checkpoints.
    """

    def __init__(
        self,
        loop: loop_lib.Loop,
        directory: run_directory.RunDirectory,
        loggers: Sequence[base.Logger],
    ) -> None:
        """Checks the loggers; `opened` opens the files.

        Args:
          loop: The loop that is logged.
          directory: The directory of the outputs.
          loggers: The user's loggers.

        Raises:
          TypeError: One of `loggers` has no `write` and `close`.
        """
        for i, logger in enumerate(loggers):
            if not isinstance(logger, base.Logger):
                raise TypeError(
                    f"loggers[{i}]: got a {type(logger).__name__}, expected an object "
                    "with write(values) and close(); see tfrl.loggers."
                )
        self.seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self.loss = _Mean()
        self._loop = loop
        self._directory = directory
        self._loggers = tuple(loggers)
        self._logger: base.Logger = aggregators.Dispatcher([])

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Opens metrics.csv and TensorBoard's files in this context."""
        files = aggregators.Dispatcher(
            [
                csv.CSVLogger(self._directory.metrics_csv),
                tf_summary.TFSummaryLogger(
                    str(self._directory.tensorboard), label="", steps_key="iteration"
                ),
            ]
        )
        self._logger = aggregators.Dispatcher(
            [files, *map(filters.NoneFilter, self._loggers)]
        )
        with contextlib.closing(files):
            yield

    def close_loggers(self) -> None:
        """Closes the user's loggers."""
        with contextlib.ExitStack() as stack:
            for logger in self._loggers:
                stack.callback(logger.close)

    def trained(self, loss: float, num_iterations: int, seconds: float) -> None:
        """Adds the mean loss and the time of some iterations to the next row."""
        self.seconds.assign_add(seconds)
        self.loss.add(loss, num_iterations)

    def write(self, result: evaluate.EvaluationResult | None) -> dict[str, Any]:
        """Writes a row; returns it without the values that were not measured.

        Args:
          result: The evaluation at this iteration, if there was one.
        """
        row = self._row(result)
        self._logger.write(row)
        return {name: value for name, value in row.items() if value is not None}

    def _row(self, result: evaluate.EvaluationResult | None) -> dict[str, Any]:
        """Returns one row of metrics.csv; None for values that were not measured."""
        info = self._loop.info()
        return {
            "iteration": info.iteration,
            "environment_steps": info.environment_steps,
            "train_steps": info.train_steps,
            "episodes": info.episodes,
            "training_seconds": round(float(self.seconds), 3),
            "loss": self.loss.take(),
            "average_return": _rounded(info.average_return) if info.episodes else None,
            "evaluation_return": None if result is None else _rounded(result.mean),
            "evaluation_return_std": None if result is None else _rounded(result.std),
            "evaluation_length": None
            if result is None
            else _rounded(result.lengths.mean()),
        }


def _rounded(value: float) -> float:
    """Rounds to six digits, so that the order of a mean's summation does not show."""
    return float(f"{value:.6g}")


class _Mean(tf.Module):
    """A weighted mean, which checkpoints save; `take` returns and resets it."""

    def __init__(self) -> None:
        super().__init__()
        self._sum = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._weight = tf.Variable(0.0, dtype=tf.float64, trainable=False)

    def add(self, value: float, weight: float) -> None:
        self._sum.assign_add(value * weight)
        self._weight.assign_add(weight)

    def take(self) -> float | None:
        """Returns the mean, or None without values."""
        weight = float(self._weight)
        mean = _rounded(float(self._sum) / weight) if weight else None
        self._sum.assign(0.0)
        self._weight.assign(0.0)
        return mean
