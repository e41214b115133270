"""The settings that the runs of a tuning share, and the settings of each run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrl.algorithms.algorithm import least_iterations
from tfrl.algorithms.settings import COUNT
from tfrl.algorithms.tuning import search as search_lib

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
      kind: The algorithm's class.
      name: The environment's name.
      seed: The seed of the trials.
      settings: All settings that are not searched.
      num_evaluations: The number of evaluations of a run.
      searched: The range of each field.
    """

    def __init__(
        self,
        kind: type[Algorithm],
        environment_name: str,
        settings: Any,
        num_environment_steps: int | None,
        num_evaluations: int,
        search: search_lib.Given,
    ) -> None:
        """Checks the arguments; see `tune.tune`. Imports no TensorFlow."""
        fields = kind.Settings.texts()
        if kind.is_offline:
            raise ValueError(
                f"algorithm: got {kind.name!r}, which learns from recorded data, "
                "expected one that learns in an environment; write a loop over trials "
                "of Optuna."
            )
        if num_environment_steps is not None:
            COUNT("num_environment_steps", num_environment_steps, remedy="raise it")
            if not {"collect_steps_per_iteration", "sequence_length"} & {*fields}:
                raise ValueError(
                    f"num_environment_steps: got {num_environment_steps}, but an "
                    f"iteration of {kind.title} has no fixed number of steps; set "
                    "num_iterations."
                )
        self.kind, self.name, self.settings = kind, environment_name, settings
        self._steps, self.num_evaluations = num_environment_steps, num_evaluations
        self.seed = settings.seed
        self.searched = search_lib.fields(kind.Settings, search)

    def fields(self) -> dict[str, Any]:
        """Returns the fields that a continued tuning must share, valid in JSON."""
        return {
            "algorithm": "tune",
            "agent": self.kind.name,
            "env": self.name,
            **self.settings.to_dict(),
            "num_environment_steps": self._steps,
            "num_evaluations": self.num_evaluations,
            "search": {k: search_lib.text(v) for k, v in self.searched.items()},
        }

    def settings_of(self, values: Mapping[str, Any], seed: int = 0) -> Any:
        """Returns the settings of a run.

        Args:
          values: The values of the fields that are searched.
          seed: The seed.

        Raises:
          ValueError: The values cannot be combined.
        """
        s = dataclasses.replace(self.settings, **values, seed=seed)
        iterations = s.num_iterations
        if self._steps is not None:
            iterations = least_iterations(s.to_dict(), self._steps)
        interval = -(-iterations // self.num_evaluations)
        return dataclasses.replace(
            s,
            num_iterations=interval * self.num_evaluations,
            eval_interval=interval,
            log_interval=interval,
        )

    def row(self, settings: Mapping[str, Any], source: str) -> dict[str, Any]:
        """Returns settings as a preset, with their source."""
        return {
            "name": f"{self.kind.name}_{self.name}_tuned",
            "algorithm": self.kind.name,
            "environment": self.name,
            "source": source,
            "settings": settings,
        }
