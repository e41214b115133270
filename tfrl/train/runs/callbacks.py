"""Callbacks of a run: code of the user that sees its progress and may stop it.

A `RunResult` is what they see, and the caller gets, at the end.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrl.system import log
from tfrl.utils import number_checks

if TYPE_CHECKING:
    import tensorflow as tf

    from tfrl.eval import evaluate


@dataclasses.dataclass(frozen=True)
class RunResult:
    """The outcome of a run.

    Attributes:
      iteration: The total number of iterations.
      finished: False if the run was interrupted, or stopped by a callback.
      resumed_at: The iteration at which the run resumed, or None for a fresh start.
      best_return: The best mean return of an evaluation after an update, or None.
      last_return: The mean return of the last evaluation in this call of `run`, or
        None.
      iterations_per_second: Speed of training in this call, without the evaluations,
        the compilation and the collection of initial experience.
      stopped_by: The name of the callback that stopped the run, and its reason; None if
        none did.
      environment_steps_per_second: The speed in steps of the environments; 0 for a loop
        without an environment.
      updates_per_second: The speed in updates of the agent.
    """

    iteration: int
    finished: bool
    resumed_at: int | None
    best_return: float | None
    last_return: float | None
    iterations_per_second: float
    stopped_by: str | None = None
    environment_steps_per_second: float = 0.0
    updates_per_second: float = 0.0


class Callback:
    """Base class of callbacks; override the methods of the events that matter to you.

    ```python
    class StopAfterHour(train.Callback):
        def on_log(self, row):
            if row["training_seconds"] >= 3600.0:
                self.stop("an hour of training is over")

    train.Run(loop, directory, num_iterations=10_000, callbacks=[StopAfterHour()], ...)
    ```

    `StopAtReturn` and `Curriculum` are callbacks that are ready to use.

    A callback may set `logged_metrics`, functions of further numbers for the log by
    name, and `saved_state`, a `tf.Module` whose variables checkpoints then hold. They
    are restored before `on_start`.

    As in Keras and Lightning, a callback requests a stop, and the run decides when: the
    other callbacks are still called for the same event, and the run then saves a
    checkpoint and its last policy, prints the name of the callback and its reason, and
    ends. It stays stopped when it is run again; `Run(..., continue_stopped=True)`
    continues it. Return values are ignored.

    The method `on_interval` of a callback that sets `interval` is called every
    `interval` iterations, before anything is written. An iteration is not a step: in an
    iteration of PPO with 8 environments and rollouts of 256 steps, they take 2,048
    steps, and `learn` counts these.

    All methods that begin with `on_` are those of events: any other one is an error.

    At each iteration, the run first writes everything that is due: the row, the
    policies and the checkpoint. It then calls `on_log`, `on_evaluation` and
    `on_checkpoint`, if their events have occurred. So the files that a callback reads
    are complete.

    An exception that a callback raises ends the run at that point and reaches the
    caller of `Run.run` unchanged. Nothing further is saved: the run can be resumed from
    its last checkpoint, and `on_end` is not called.
    """

    # The iterations between calls of `on_interval`; None never calls it.
    interval: int | None = None
    # Further numbers for logs, by name, as the run's own `metrics`.
    logged_metrics: Mapping[str, Callable[[], Any]] = types.MappingProxyType({})
    # What checkpoints hold of the callback, such as a level.
    saved_state: tf.Module | None = None
    _stop_reason: str | None = None

    def stop(self, reason: str = "") -> None:
        """Asks the run to stop after the current event.

        Args:
          reason: The reason, which the run prints and returns in
            `RunResult.stopped_by`.
        """
        self._stop_reason = reason

    def on_start(self, iteration: int) -> None:
        """Called when training starts or resumes, and not for a finished run.

        Args:
          iteration: The iterations done so far: 0, or more in a resumed run.
        """

    def on_interval(self, iteration: int) -> None:
        """Called at each multiple of `interval` iterations.

        Args:
          iteration: The iterations done so far.
        """

    def on_log(self, row: Mapping[str, Any]) -> None:
        """Called after a row of metrics.csv was written.

        Args:
          row: The numbers by name, without those that were not measured: the columns of
            metrics.csv, and the further numbers that loggers receive.
        """

    def on_evaluation(self, result: evaluate.EvaluationResult) -> None:
        """Called after an evaluation, the first time with the untrained policy.

        Args:
          result: The returns and lengths of its episodes, and the iteration.
        """

    def on_checkpoint(self, path: str) -> None:
        """Called after a checkpoint was saved.

        Args:
          path: The checkpoint's prefix, `LOGDIR/checkpoints/ckpt-ITERATION`.
        """

    def on_end(self, result: RunResult) -> None:
        """Called when training has ended: finished, stopped or interrupted.

        Args:
          result: The later result of `Run.run`.
        """


_EVENTS = [name for name in vars(Callback) if name.startswith("on_")]


class StopAtReturn(Callback):
    """Stops a run at the first evaluation of a trained policy that is good enough.

    ```python
    train.Run(loop, directory, callbacks=[train.StopAtReturn(475.0)], ...)
    ```
    """

    def __init__(self, threshold: float) -> None:
        """Stores the threshold.

        Args:
          threshold: The least mean return of an evaluation that stops the run.
        """
        self._threshold = threshold

    def on_evaluation(self, result: evaluate.EvaluationResult) -> None:
        """Stops the run if the mean return reaches the threshold."""
        if result.iteration and result.mean >= self._threshold:
            self.stop(f"mean return {result.mean:.1f} of {self._threshold:g}")


class CallbackList:
    """Calls several callbacks in order, and finds out whether one requests a stop."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        """Stores the callbacks.

        Args:
          callbacks: The callbacks.

        Raises:
          TypeError: One of them is not a `Callback`, or has a method that no event
            calls, or one is given without a list.
          ValueError: An interval is not positive.
        """
        if isinstance(callbacks, Callback):
            raise TypeError(
                f"callbacks: got a {type(callbacks).__name__}, expected a list of "
                "callbacks; put it in one, callbacks=[...]."
            )
        for i, callback in enumerate(callbacks):
            if not isinstance(callback, Callback):
                found = (
                    f"the class {callback.__name__}"
                    if isinstance(callback, type)
                    else f"a {type(callback).__name__}"
                )
                raise TypeError(
                    f"callbacks[{i}]: got {found}, expected an instance of a subclass "
                    "of tfrl.train.Callback; derive a class from it and pass an object "
                    "of this class."
                )
            _check_events(f"callbacks[{i}]", type(callback))
            if callback.interval is not None:
                number_checks.check_integer(
                    f"callbacks[{i}].interval",
                    callback.interval,
                    1,
                    remedy="give a number of iterations, or None",
                )
        self._callbacks = tuple(callbacks)

    def warn_of_missed(self, most_iterations: int, most_steps: int | None) -> None:
        """Warns of callbacks whose `on_interval` the run never calls.

        Args:
          most_iterations: The largest number of iterations of the run.
          most_steps: The largest number of environment steps of an iteration; None if
            there is no limit.
        """
        for i, callback in enumerate(self._callbacks):
            interval = callback.interval
            has_method = type(callback).on_interval is not Callback.on_interval
            found = "None" if interval is None else f"{interval:,} iterations"
            if has_method and (interval or most_iterations + 1) > most_iterations:
                steps = f", of at most {most_steps:,} steps each" if most_steps else ""
                log.warn(
                    f"callbacks[{i}].interval: got {found}, so on_interval is never "
                    f"called: this run has at most {most_iterations:,} "
                    f"iterations{steps}. Give a smaller number of iterations."
                )

    @property
    def logged_metrics(self) -> dict[str, Callable[[], Any]]:
        """The further numbers of all callbacks for logs, by name."""
        found: dict[str, Callable[[], Any]] = {}
        for each in self._callbacks:
            found |= each.logged_metrics
        return found

    @property
    def saved_states(self) -> dict[str, tf.Module]:
        """What checkpoints hold of the callbacks, by name."""
        return {
            f"callback_{i}": each.saved_state
            for i, each in enumerate(self._callbacks)
            if each.saved_state is not None
        }

    @property
    def intervals(self) -> list[int]:
        """The intervals of the callbacks that have one."""
        return [each.interval for each in self._callbacks if each.interval]

    def reached(self, iteration: int) -> None:
        """Calls `on_interval` of the callbacks whose interval has ended."""
        for callback in self._callbacks:
            if callback.interval and iteration % callback.interval == 0:
                callback.on_interval(iteration)

    def start(self, iteration: int) -> None:
        """Forgets earlier requests to stop, and calls `on_start`."""
        for callback in self._callbacks:
            callback._stop_reason = None
        self.call(on_start=iteration)

    def call(self, **events: Any) -> None:
        """Calls the named methods, each with its argument unless it is None."""
        for event, argument in events.items():
            if argument is not None:
                for callback in self._callbacks:
                    getattr(callback, event)(argument)

    @property
    def stopped_by(self) -> str | None:
        """The name and the reason of the first callback that requests a stop."""
        for callback in self._callbacks:
            reason = callback._stop_reason
            if reason is not None:
                name = type(callback).__name__
                return f"{name}: {reason}" if reason else name
        return None


def _check_events(name: str, kind: type[Callback]) -> None:
    """Raises a TypeError if a class of callbacks has a method that no event calls."""
    for method in dir(kind):
        is_event = method in _EVENTS or not method.startswith("on_")
        if is_event or not callable(getattr(kind, method)):
            continue
        near = difflib.get_close_matches(method, _EVENTS, n=1)
        remedy = f"did you mean {near[0]}?" if near else "rename it without on_."
        raise TypeError(
            f"{name}: got a {kind.__name__} with the method {method}, which no run "
            f"calls, expected the methods {', '.join(_EVENTS)}; {remedy}"
        )
