"""Trains the runs of tuning in processes, which end early if they are pruned.

Each is an ordinary run with its own folder, so it resumes by itself. Its learning
curve is read from its metrics.csv.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from tfrl.algorithms import child_runs
from tfrl.algorithms.tuning.plan import NextRun, Plan, Report, TunedRun
from tfrl.train.runs import run_files

_FLAGS = ("--nofilm", "--noevaluate_untrained", "--quiet")


class Processes:
    """Processes that train runs, a limited number at a time."""

    def __init__(
        self, plan: Plan, environment: Any, folder: pathlib.Path, number: int
    ) -> None:
        """Stores the plan of the runs.

        Args:
          plan: The settings that the runs share.
          environment: The name of the environment.
          folder: The folder of the runs' folders.
          number: The largest number of processes at a time.

        Raises:
          TypeError: `environment` is not a name.
        """
        if not isinstance(environment, str):
            raise TypeError(
                f"environment: got a {type(environment).__name__} for trials in "
                "processes, which make environments by their names, expected a name; "
                "register it with Gymnasium, or write a loop over trials of Optuna."
            )
        self._plan, self._folder, self._number = plan, folder, number

    def run(self, next_run: NextRun, report: Report) -> None:
        """Trains runs until there is no next one; see `Slots.run`."""
        curves: list[_Curve] = []
        # The processes share the processors.
        share = max(1, child_runs.num_processors() // self._number)
        os.environ["TF_NUM_INTRAOP_THREADS"] = str(share)

        def children() -> Iterator[child_runs.ChildRun]:
            while (run := next_run()) is not None:
                folder = self._folder / run.name
                s = self._plan.settings_of(run.values, run.seed)
                curves.append(_Curve(folder, run, s.eval_interval, report))
                row = self._plan.row(s.to_dict(), "a run of tfrl tune")
                yield _child(folder, row)

        child_runs.train_all(
            children(),
            self._number,
            lambda number, _: curves[number].end(),
            lambda number: not curves[number].goes_on(),
        )


def _child(folder: pathlib.Path, row: Mapping[str, Any]) -> child_runs.ChildRun:
    """Returns the command of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder.absolute() / "settings.json"
    settings.write_text(json.dumps(row, indent=2), encoding="utf-8")
    words = ["train", row["algorithm"], f"--config={settings}", *_FLAGS]
    return child_runs.ChildRun(folder, words)


class _Curve:
    """The learning curve of a run, which another process writes."""

    def __init__(
        self, folder: pathlib.Path, run: TunedRun, interval: int, report: Report
    ) -> None:
        self._path, self._run, self._report = folder / "metrics.csv", run, report
        self._interval, self._size, self._reported = interval, 0, 0
        self._goes_on = True

    def goes_on(self) -> bool:
        """Reports the new evaluations; returns whether the run continues."""
        size = self._path.stat().st_size if self._path.exists() else 0
        if size != self._size:
            self._size = size
            for row in run_files.read_metrics(self._path):
                self._read(row)
        return self._goes_on

    def _read(self, row: Mapping[str, str]) -> None:
        number = int(row["iteration"]) // self._interval
        value = row.get("evaluation_return")
        if value and number > self._reported and self._goes_on:
            self._reported = number
            self._goes_on = self._report(self._run, number, float(value))

    def end(self) -> None:
        """Reports the last evaluations, or that the run failed."""
        if self.goes_on():
            self._goes_on = self._report(self._run, self._reported + 1, None)
