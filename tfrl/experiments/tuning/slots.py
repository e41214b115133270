"""Trains the runs of tuning in one program, which has a slot for each.

A slot whose run has ended, or was pruned, gets the next run. The program is compiled
once and keeps its size; each run has its own counters, schedules and random numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrl import train
from tfrl.experiments import one_program

if TYPE_CHECKING:
    from tfrl.experiments.tuning.plan import NextRun, Plan, Report, TunedRun


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
        self._dynamics = one_program.find_dynamics(plan.recipe.settings, environment)
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

    def _make_loop(self, seed: int, **values: float) -> Any:
        recipe = self._plan.recipe_of(values, seed)
        return one_program.make_loop(recipe, values, self._dynamics)
