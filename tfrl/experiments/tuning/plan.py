"""The settings that the runs of a tuning share, and the settings of each run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tfrl.algorithms.recipe import Recipe
from tfrl.algorithms.settings import COUNT
from tfrl.experiments.tuning import search as search_lib


class TunedRun(NamedTuple):
    """A run of tuning.

    Attributes:
      name: The name of its folder.
      seed: Its seed.
      values: The values of the fields that tuning searches, by name.
      trial: Optuna's trial; None for a run with the values of an earlier trial.
    """

    name: str
    seed: int
    values: Mapping[str, Any]
    trial: Any = None


# Returns the next run; None if there is none.
NextRun = Callable[[], TunedRun | None]
# Takes a run, the number of its evaluation, from 1 on, and the mean return, which is
# not finite if the run diverged, and None if it failed. Returns whether the run
# continues.
Report = Callable[[TunedRun, int, float | None], bool]


class Plan:
    """The settings that all runs of a tuning share, and how to make each run's own.

    Attributes:
      recipe: What all runs have, with all settings that are not searched.
      seed: The seed of the trials.
      num_evaluations: The number of evaluations of a run.
      searched: The range of each setting.
    """

    def __init__(
        self,
        recipe: Recipe,
        num_environment_steps: int | None,
        num_evaluations: int,
        search: search_lib.Given,
        environment: Any,
    ) -> None:
        """Checks the arguments; see `tune.tune`. Imports no TensorFlow.

        Args:
          recipe: What all runs have.
          num_environment_steps: The length of a run; None for its `num_iterations`.
          num_evaluations: The number of evaluations of a run.
          search: See `search.fields`.
          environment: The environment, or its name.
        """
        kind = recipe.algorithm
        if recipe.own_parts:
            raise ValueError(
                f"algorithm: got one with parts of a program's own, {recipe.own_parts},"
                " expected settings alone; write a loop over trials of Optuna."
            )
        if kind.is_offline:
            raise ValueError(
                f"algorithm: got {kind.name!r}, which learns from recorded data, "
                "expected one that learns in an environment; write a loop over trials "
                "of Optuna."
            )
        if num_environment_steps is not None:
            COUNT("num_environment_steps", num_environment_steps, remedy="raise it")
            if not recipe.make(environment).steps_per_iteration:
                raise ValueError(
                    f"num_environment_steps: got {num_environment_steps}, but an "
                    f"iteration of {kind.title} has no fixed number of steps; set "
                    "num_iterations."
                )
        self.recipe = dataclasses.replace(recipe, num_environment_steps=None)
        self._steps, self._given = num_environment_steps, environment
        self.num_evaluations, self.seed = num_evaluations, recipe.settings["seed"]
        self.searched = search_lib.fields(kind, search)

    def fields(self) -> dict[str, Any]:
        """Returns the fields that a continued tuning must share, valid in JSON."""
        return {
            "program": "tune",
            **self.recipe.to_json(),
            "num_environment_steps": self._steps,
            "num_evaluations": self.num_evaluations,
            "search": {k: search_lib.text(v) for k, v in self.searched.items()},
        }

    def recipe_of(self, values: Mapping[str, Any], seed: int = 0) -> Recipe:
        """Returns the recipe of a run.

        Args:
          values: The values of the settings that are searched.
          seed: The seed.

        Raises:
          ValueError: The values cannot be combined.
        """
        settings = {**self.recipe.settings, **values, "seed": seed}
        made = dataclasses.replace(self.recipe, settings=settings).make(self._given)
        iterations = made.num_iterations
        if self._steps is not None:
            iterations = made.least_iterations(self._steps)
        interval = -(-iterations // self.num_evaluations)
        lengths = {
            "num_iterations": interval * self.num_evaluations,
            "eval_interval": interval,
            "log_interval": interval,
        }
        return dataclasses.replace(self.recipe, settings={**settings, **lengths})

    def row(self, settings: Mapping[str, Any], source: str) -> dict[str, Any]:
        """Returns settings as a preset, with their source."""
        name, environment = self.recipe.algorithm.name, self.recipe.environment
        return {
            "name": f"{name}_{environment}_tuned",
            "algorithm": name,
            "environment": environment,
            "source": source,
            "settings": settings,
        }
