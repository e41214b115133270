"""The rows of a run's log, for metrics.csv, TensorBoard and the user's loggers."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import tensorflow as tf

from tfrl.eval import evaluate
from tfrl.loggers import base, csv, tf_summary
from tfrl.system import versions
from tfrl.train.loops import training_loop
from tfrl.train.runs import (
    columns,
    history,
    run_directory,
    run_files,
)

if TYPE_CHECKING:
    from tfrl.typing import types

# The seconds of parts of a run; environment_seconds is a part of its training.
_PARTS = ("starting_seconds", "evaluating_seconds", "environment_seconds")


@runtime_checkable
class RunView(Protocol):
    """Further numbers and text for the log and the progress line of a `train.Run`."""

    def measure(self) -> Mapping[str, float]:
        """Returns the further columns of a row of metrics.csv, always the same ones.

        NaN counts as not measured. If TensorBoard and the loggers get a column of the
        same name from the loop, such as `steps_per_second`, this one replaces it.
        """

    def words(self) -> Sequence[str]:
        """Returns the progress line's text; called after each call of the loop."""


class MetricsTable(csv.CSVLogger):
    """Writes metrics.csv: the columns of every run, and further ones after them."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the file, in which rows are appended.

        Args:
          path: The file.
        """
        super().__init__(path, sort_columns=False)

    def write(self, values: base.Values) -> None:
        """Writes a row; a column that it lacks, or that is None, stays empty."""
        super().write({**dict.fromkeys(columns.TABLE), **values})


class RunLog:
    """Collects the numbers of a run between two rows, and writes the rows.

    Attributes:
      seconds: The seconds of training so far, for checkpoints.
      loss: The mean loss since the last row, for checkpoints.
      history: Everything that was measured.
    """

    def __init__(
        self,
        loop: training_loop.TrainingLoop,
        directory: run_directory.RunDirectory | None,
        loggers: Sequence[base.Logger],
        metrics: Mapping[str, Callable[[], types.Float]],
        view: RunView | None = None,
        find_facts: Callable[[], Mapping[str, Any]] | None = None,
        rows: list[dict[str, Any]] | None = None,
    ) -> None:
        """Checks the loggers; `opened` opens the files.

        Args:
          loop: The loop that is logged.
          directory: The directory of the outputs; None writes no files.
          loggers: The user's loggers.
          metrics: The user's further numbers.
          view: Measures the further columns of metrics.csv.
          find_facts: Returns facts about the environment, which the history's first row
            holds; called once.
          rows: Earlier rows of the history, if there is no file with them; without a
            directory, further ones are added.

        Raises:
          TypeError: One of `loggers` has no `write` and `close`, or `view` has no
            `measure` and `words`, or one of `metrics` is not a function.
          ValueError: One of `metrics` has the name of a column; see `columns`.
        """
        for i, logger in enumerate(loggers):
            if isinstance(logger, type) or not isinstance(logger, base.Logger):
                raise TypeError(
                    f"loggers[{i}]: got {_described(logger)}, expected an object with "
                    "write(values) and close(); see tfrl.loggers."
                )
        if view is not None and not isinstance(view, RunView):
            raise TypeError(
                f"view: got {_described(view)}, expected an object with measure() and "
                "words(); see tfrl.train.RunView."
            )
        for name, metric in metrics.items():
            if not callable(metric):
                raise TypeError(
                    f"metrics[{name!r}]: got a {type(metric).__name__}, expected a "
                    "function without arguments that returns a number, such as the "
                    "method `result` of a metric."
                )
            column = columns.BY_NAME.get(name)
            if column is not None and column.writer != columns.CALLBACK:
                raise ValueError(
                    f"metrics: got {name!r}, which the run logs itself "
                    f"({column.text}); choose another name."
                )
        self.seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self.loss = _Mean()
        self._loop = loop
        self._directory = directory
        self._loggers = tuple(loggers)
        self._metrics = dict(metrics)
        self._view = view
        self._find_facts = find_facts
        self.history = history.History(
            None if directory is None else directory.diagnostics, rows
        )
        # The seconds of each of _PARTS.
        self._spent = dict.fromkeys(_PARTS, 0.0)
        # The processor time of this process that `processor_seconds` leaves out.
        self._other_processor_seconds = 0.0
        self._known_steps = 0
        self._known_python_seconds = 0.0
        # Steps of the environment and seconds of training since the last row.
        self._interval = (0, 0.0)
        # Values for the next row only.
        self._news: dict[str, Any] = {}
        self._written: list[base.Logger] = []
        self._others: list[base.Logger] = list(loggers)

    @contextlib.contextmanager
    def opened(
        self,
        resumed_without: Sequence[str] | None = None,
        grown: Mapping[str, tuple[int, int]] | None = None,
    ) -> Iterator[None]:
        """Opens metrics.csv and TensorBoard's files in this context.

        Args:
          resumed_without: For a run that resumes, what its checkpoint did not hold of
            the state of the run; None if the run begins.
          grown: The lengths of the run that have changed, before and now.
        """
        info = self._loop.info()
        self._known_steps = info.environment_steps
        self._known_python_seconds = self._loop.python_seconds()
        self._interval = (0, 0.0)
        self.history.forget_after(info.iteration)
        last = self.history.rows[-1] if self.history.rows else {}
        self._news = {"versions": versions.found(), **self._facts()}
        if resumed_without is not None:
            self._news["resumed_without"] = list(resumed_without)
        if grown:
            self._news["grown"] = {name: list(two) for name, two in grown.items()}
        self._loop.diagnostics.begin()
        self._spent = {name: run_files.number(last, name) for name in _PARTS}
        earlier = run_files.number(last, "processor_seconds")
        self._other_processor_seconds = time.process_time() - earlier
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.history.opened())
            if self._directory is not None:
                table = stack.enter_context(
                    contextlib.closing(MetricsTable(self._directory.metrics_csv))
                )
                tensorboard = stack.enter_context(
                    contextlib.closing(_tensorboard(self._directory))
                )
                self._written = [table]
                self._others = [_Tagged(tensorboard), *self._loggers]
            yield

    def _facts(self) -> dict[str, Any]:
        """Returns the entry `environment` of the first row, unless a row has it."""
        is_known = any("environment" in row for row in self.history.rows)
        if self._find_facts is None or is_known:
            return {}
        return {"environment": dict(self._find_facts())}

    def close_loggers(self) -> None:
        """Closes the user's loggers."""
        with contextlib.ExitStack() as stack:
            for logger in self._loggers:
                stack.callback(logger.close)

    def called(
        self, info: training_loop.IterationInfo, num_iterations: int, seconds: float
    ) -> None:
        """Adds the loss and the time of a call of the loop to the next row.

        A call without iterations, which compiles the program or collects initial
        experience, does not count.
        """
        if not num_iterations:
            self.spent("starting_seconds", seconds)
        new_steps = info.environment_steps - self._known_steps
        self._known_steps = info.environment_steps
        known, python_seconds = self._known_python_seconds, self._loop.python_seconds()
        self._known_python_seconds = python_seconds
        if num_iterations:
            self.spent("environment_seconds", python_seconds - known)
            # TensorFlow keeps each Python number that becomes a tensor, but no arrays.
            self.seconds.assign_add(np.asarray(seconds, np.float64))
            self.loss.add(info.loss, num_iterations)
            steps, interval = self._interval
            self._interval = steps + new_steps, interval + seconds

    def spent(self, part: str, seconds: float) -> None:
        """Adds seconds to a part of the run.

        Args:
          part: "starting_seconds", "evaluating_seconds" or "environment_seconds".
          seconds: The seconds.
        """
        self._spent[part] += seconds

    def write(self, result: evaluate.EvaluationResult | None) -> dict[str, Any]:
        """Writes a row to metrics.csv, and more numbers to TensorBoard and the loggers.

        Returns the values for the loggers: all numbers that were measured.

        Args:
          result: The evaluation at this iteration, if there was one.

        Raises:
          TypeError: A function of `metrics` returns no number.
        """
        row = self._row(result)
        for logger in self._written:
            logger.write(row)
        measured = {**self._more(), **_of_values(result), **row}
        values = {name: x for name, x in measured.items() if x is not None}
        for logger in self._others:
            logger.write(values)
        seconds = time.process_time() - self._other_processor_seconds
        spent = {**self._spent, "processor_seconds": seconds}
        self.history.add({**values, **spent, **_of_episodes(result), **self._news})
        self._news = {}
        return values

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
            **self._viewed(),
        }

    def _viewed(self) -> dict[str, Any]:
        """Returns the columns that the view measures."""
        found = {} if self._view is None else self._view.measure()
        return {name: _measured(value) for name, value in found.items()}

    def _more(self) -> dict[str, Any]:
        """Returns the numbers that metrics.csv does not hold."""
        steps, seconds = self._interval
        self._interval = (0, 0.0)
        return {
            "steps_per_second": _rounded(steps / seconds) if seconds else None,
            "replay_size": self._loop.replay_size(),
            "priority_evenness": _measured(self._loop.priority_evenness()),
            **{k: _rounded(v) for k, v in self._loop.diagnostics.measure().items()},
            **{name: self._own(name) for name in self._metrics},
        }

    def _own(self, name: str) -> float | None:
        """Returns a number of the user's own."""
        value = self._metrics[name]()
        try:
            return _measured(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"metrics[{name!r}]: got {value!r} from the function, expected a "
                "number; return one, or NaN if there is nothing to measure."
            ) from None


def _tensorboard(
    directory: run_directory.RunDirectory,
) -> tf_summary.TFSummaryLogger:
    """Opens TensorBoard's files and writes the configuration."""
    logger = tf_summary.TFSummaryLogger(
        str(directory.tensorboard), label="", steps_key="iteration"
    )
    logger.write_hyperparameters(run_directory.flatten(directory.config))
    return logger


def _of_values(result: evaluate.EvaluationResult | None) -> dict[str, float]:
    """Returns the means of the predicted and of the actual returns."""
    if result is None or result.predicted is None or result.realized is None:
        return {}
    ended = np.isfinite(result.realized)
    if not ended.any():
        return {}
    return {
        "predicted_return": _rounded(float(result.predicted[ended].mean())),
        "realized_return": _rounded(float(result.realized[ended].mean())),
    }


def _of_episodes(result: evaluate.EvaluationResult | None) -> dict[str, Any]:
    """Returns the episodes of an evaluation, for the history."""
    if result is None:
        return {}
    ended = result.terminated
    return {
        "evaluation_returns": [_rounded(float(x)) for x in result.returns],
        "evaluation_lengths": result.lengths,
        **({} if ended is None else {"evaluation_terminated": ended}),
    }


class _Tagged:
    """A logger that passes values on under their tags in TensorBoard."""

    def __init__(self, to: base.Logger) -> None:
        self._to = to

    def write(self, values: base.Values) -> None:
        """Writes the values under their tags."""
        self._to.write({columns.tag(name): value for name, value in values.items()})

    def close(self) -> None:
        """Closes the logger behind this one."""
        self._to.close()


def _rounded(value: float) -> float:
    """Rounds to six digits, so that the order of a mean's summation does not show."""
    return float(f"{value:.6g}")


def _measured(value: Any) -> float | None:
    """Returns the number rounded; None for NaN and for None."""
    number = math.nan if value is None else float(value)
    return None if math.isnan(number) else _rounded(number)


class _Mean(tf.Module):
    """A weighted mean, which checkpoints save; `take` returns and resets it."""

    def __init__(self) -> None:
        super().__init__()
        self._sum = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._weight = tf.Variable(0.0, dtype=tf.float64, trainable=False)

    def add(self, value: float, weight: float) -> None:
        self._sum.assign_add(np.asarray(value * weight, np.float64))
        self._weight.assign_add(np.asarray(weight, np.float64))

    def take(self) -> float | None:
        """Returns the mean, or None without values."""
        weight = float(self._weight)
        mean = _rounded(float(self._sum) / weight) if weight else None
        self._sum.assign(0.0)
        self._weight.assign(0.0)
        return mean


def _described(given: Any) -> str:
    """Returns what was given instead of an object with some methods, as text."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return f"a {type(given).__name__}"
