"""The settings that the runs of a tuning share, and the settings of each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrl.algorithms.settings import COUNT
from tfrl.experiments.tuning import search as search_lib

if TYPE_CHECKING:
    from tfrl.algorithms.algorithm import Algorithm


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
      recipe: The algorithm, with all settings that are not searched.
      name: The environment's name.
      seed: The seed of the trials.
      num_evaluations: The number of evaluations of a run.
      searched: The range of each setting.
    """

    def __init__(
        self,
        recipe: Algorithm,
        num_environment_steps: int | None,
        num_evaluations: int,
        search: search_lib.Given,
    ) -> None:
        """Checks the arguments; see `tune.tune`. Imports no TensorFlow."""
        if recipe.is_offline:
            raise ValueError(
                f"algorithm: got {recipe.name!r}, which learns from recorded data, "
                "expected one that learns in an environment; write a loop over trials "
                "of Optuna."
            )
        if num_environment_steps is not None:
            COUNT("num_environment_steps", num_environment_steps, remedy="raise it")
            if not recipe.steps_per_iteration:
                raise ValueError(
                    f"num_environment_steps: got {num_environment_steps}, but an "
                    f"iteration of {recipe.title} has no fixed number of steps; set "
                    "num_iterations."
                )
        self.recipe, self.name = recipe, recipe.world.name
        self._steps, self.num_evaluations = num_environment_steps, num_evaluations
        self.seed = recipe.seed
        self.searched = search_lib.fields(type(recipe), search)

    def fields(self) -> dict[str, Any]:
        """Returns the fields that a continued tuning must share, valid in JSON."""
        return {
            "program": "tune",
            "algorithm": self.recipe.name,
            "env": self.name,
            **self.recipe.settings,
            "num_environment_steps": self._steps,
            "num_evaluations": self.num_evaluations,
            "search": {k: search_lib.text(v) for k, v in self.searched.items()},
        }

    def config_of(self, values: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
        """Returns the configuration of a run; see `registry.algorithm_of`.

        Args:
          values: The values of the settings that are searched.
          seed: The seed.

        Raises:
          ValueError: The values cannot be combined.
        """
        settings = {**self.recipe.settings, **values, "seed": seed}
        kind: Any = type(self.recipe)
        environment = self.recipe.own_environment
        given = {} if environment is None else {"environment": environment}
        recipe = kind(**given, environment_name=self.name, settings=settings)
        iterations = recipe.num_iterations
        if self._steps is not None:
            iterations = recipe.least_iterations(self._steps)
        interval = -(-iterations // self.num_evaluations)
        return {
            "algorithm": recipe.name,
            "env": self.name,
            **settings,
            "num_iterations": interval * self.num_evaluations,
            "eval_interval": interval,
            "log_interval": interval,
        }

    def row(self, settings: Mapping[str, Any], source: str) -> dict[str, Any]:
        """Returns settings as a preset, with their source."""
        return {
            "name": f"{self.recipe.name}_{self.name}_tuned",
            "algorithm": self.recipe.name,
            "environment": self.name,
            "source": source,
            "settings": settings,
        }
