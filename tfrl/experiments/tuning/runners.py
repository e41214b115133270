"""Trains the runs of tuning, in the slots of one program or in processes.

A slot whose run has ended, or was pruned, gets the next run. The program is compiled
once and keeps its size; each run has its own counters, schedules and random numbers.

A run in a process is an ordinary one with its own folder, so it resumes by itself. Its
learning curve is read from its metrics.csv, and it ends early if it is pruned.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tfrl import train
from tfrl.experiments import children as children_lib
from tfrl.experiments import one_program
from tfrl.experiments.tuning.plan import NextRun, Plan, Report, TunedRun
from tfrl.system import interrupts
from tfrl.train.runs import run_files

_OPTIONS = {"films": False, "evaluates_untrained": False, "shows_progress": False}


class Slots:
    """The slots of one program."""

    def __init__(self, plan: Plan, environment: Any, number: int) -> None:
        """Stores the plan; the first runs make the program.

        Args:
          plan: The settings that the runs share.
          environment: See `suites.find_dynamics`.
          number: The number of slots.
        """
        self._plan, self._number = plan, number
        self._settings = plan.recipe_of({}).settings
        self._environment = environment
        self._members: train.sweeps.members.Members | None = None

    def run(self, next_run: NextRun, report: Report) -> None:
        """Trains runs until `next_run` returns none.

        Args:
          next_run: See `NextRun`.
          report: See `Report`; called after each evaluation of each run.
        """
        running: dict[int, TunedRun] = {}
        evaluations = dict.fromkeys(range(self._number), 0)
        while True:
            new = {}
            for slot in range(self._number):
                run = None if slot in running else next_run()
                if run is None:
                    continue
                new[slot] = run
                running[slot], evaluations[slot] = run, 0
            if not running:
                return
            members = self._with(new)
            losses, _, returns = members.advance(self._settings["eval_interval"])
            for slot, run in sorted(running.items()):
                evaluations[slot] += 1
                value = float(returns[slot] if np.isfinite(losses[slot]) else np.nan)
                if not report(run, evaluations[slot], value):
                    del running[slot]

    def _with(self, new: Mapping[int, TunedRun]) -> train.sweeps.members.Members:
        """Returns the program's members, with new runs in their slots."""
        if self._members is not None:
            if new:
                self._members.replace(
                    {slot: (run.seed, run.values) for slot, run in new.items()}
                )
            return self._members
        # Slots without a run repeat one until there is a run for them.
        runs = [new.get(slot, new[0]) for slot in range(self._number)]
        self._members = train.sweeps.members.Members(
            self._make_loop,
            [run.seed for run in runs],
            {name: [run.values[name] for run in runs] for name in runs[0].values},
            self._settings["num_eval_episodes"],
        )
        self._members.start()
        return self._members

    def _make_loop(self, seed: int, **values: float) -> train.TrainingLoop:
        recipe = self._plan.recipe_of(values, seed)
        return one_program.make_loop(recipe, values, self._environment)


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
        """Trains runs until there is no next one; see `Slots.run`.

        Raises:
          RuntimeError: A run was told to stop, and this process was not.
          KeyboardInterrupt: See `children.train_all`.
          Terminated: See `children.train_all`.
        """
        runs: list[children_lib.ChildRun] = []
        curves: list[_Curve] = []

        def children() -> Iterator[children_lib.ChildRun]:
            while (run := next_run()) is not None:
                folder = self._folder / run.name
                recipe = self._plan.recipe_of(run.values, run.seed)
                interval = recipe.settings["eval_interval"]
                curves.append(_Curve(folder, run, interval, report))
                runs.append(children_lib.ChildRun(folder, recipe, _OPTIONS))
                yield runs[-1]

        children_lib.train_all(
            children(),
            self._number,
            lambda number, status: curves[number].end(status),
            lambda number: not curves[number].goes_on(),
        )
        children_lib.check(runs, [curve.stopped_by for curve in curves])


class _Curve:
    """The learning curve of a run, which another process writes.

    Attributes:
      stopped_by: The exit status of a run that was told to stop, so that it goes on
        later; 0 for others.
    """

    def __init__(
        self, folder: pathlib.Path, run: TunedRun, interval: int, report: Report
    ) -> None:
        self._path, self._run, self._report = folder / "metrics.csv", run, report
        self._interval, self._size, self._reported = interval, 0, 0
        self._goes_on, self.stopped_by = True, 0

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

    def end(self, status: int) -> None:
        """Reports the last evaluations, or that the run failed."""
        if not self.goes_on():
            return
        if interrupts.has_stopped(status):
            self.stopped_by = status
        else:
            self._goes_on = self._report(self._run, self._reported + 1, None)
