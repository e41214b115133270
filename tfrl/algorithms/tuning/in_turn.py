"""Trains the runs of tuning one after another, in environments of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tfrl import environments, train
from tfrl.algorithms.tuning.slots import NextRun, Report, TunedRun, find_dynamics

if TYPE_CHECKING:
    from tfrl.eval import evaluate


class InTurn:
    """Trains runs one after another in this process, without files."""

    def __init__(
        self,
        kind: Any,
        make_settings: Callable[[Mapping[str, Any], int], Any],
        environment: Any,
        name: str,
    ) -> None:
        """Keeps what makes the runs; for the arguments see `Slots`.

        Raises:
          TypeError: `environment` is one environment in Python.
        """
        self._kind, self._make_settings, self._name = kind, make_settings, name
        self._environment = environment
        self._dynamics = find_dynamics(environment, 0)
        if self._dynamics is None and not callable(environment):
            raise TypeError(
                f"environment: got a {type(environment).__name__}, expected a function "
                "that makes one, since each trial trains in environments of its own."
            )

    def run(self, next_run: NextRun, report: Report) -> None:
        """Trains runs until there is no next one; see `Slots.run`."""
        import tensorflow as tf

        while (run := next_run()) is not None:
            s = self._make_settings(run.values, run.seed)
            reporting = _Reporting(run, report, s.eval_interval)
            try:
                self._algorithm(s).learn(callbacks=[reporting], progress=False)
            except tf.errors.InvalidArgumentError:  # It diverged.
                report(run, reporting.number + 1, float("nan"))

    def _algorithm(self, s: Any) -> Any:
        environment, others = self._environment, None
        if self._dynamics is not None:
            environment, others = (
                environments.native.NativeEnvironment(self._dynamics, number, s.seed)
                for number in (s.num_envs, s.num_eval_episodes)
            )
        return self._kind(
            environment,
            evaluation_environment=others,
            settings=s,
            environment_name=self._name,
        )


class _Reporting(train.Callback):
    """Reports the evaluations of a run, and stops it if it does not go on."""

    def __init__(self, run: TunedRun, report: Report, interval: int) -> None:
        self._run, self._report, self._interval = run, report, interval
        self.number = 0

    def on_evaluation(self, result: evaluate.EvaluationResult) -> None:
        assert result.iteration is not None
        self.number = result.iteration // self._interval
        if not self._report(self._run, self.number, float(result.mean)):
            self.stop()
