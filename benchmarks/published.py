"""Published results, and the rule that chooses a row's reference among them.

benchmarks/published.csv has a line for each result:

- `source`: who published it, and `page` where.
- `algorithm`, `environment` and `steps`: what was trained, and for how many steps; an
  environment with its version.
- `value`: the mean return; `spread`: the standard deviation beside it, over the
  `episodes` of the run where `runs` is 1, else over runs. sb3-contrib prints standard
  errors, deviations divided by the number of runs and its root; here they are sample
  deviations.
- `kind`: "final" for the return after training, "best" for the mean over runs of each
  run's best evaluation, "training" for the last episodes of training, "data" for the
  episodes of a recording.
- `actions`: "greedy", "exploring", or "unstated".

Results that are only drawn in graphs are left out.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import pathlib
import re
from collections.abc import Iterable, Sequence

CSV = pathlib.Path(__file__).with_name("published.csv")
# A rollout or an episode more or less, and steps of the resets, which some count.
_MORE_STEPS = 1.1
# Who trains with another's settings: sb3-contrib with rl-zoo3's program.
_SETTINGS = {"sb3-contrib": "rl-zoo3", "CleanRL, with JAX": "CleanRL"}
_KINDS = {
    "final": "",
    "best": "best evaluations",
    "training": "training returns",
    "data": "",
}


@dataclasses.dataclass(frozen=True)
class Figure:
    """A published result; see the module's text for its fields."""

    source: str
    algorithm: str
    environment: str
    steps: int
    value: float
    runs: int
    kind: str
    actions: str
    spread: float | None = None
    episodes: int = 0

    @property
    def deviation(self) -> float | None:
        """The standard deviation over its runs; None if it is unknown."""
        return self.spread if self.runs > 1 else None

    @property
    def settings(self) -> str:
        """Who chose its settings."""
        return _SETTINGS.get(self.source, self.source)

    @property
    def obstacle(self) -> str:
        """Why no verdict follows from it beside final greedy returns; or empty."""
        if self.kind == "final" and self.actions != "greedy":
            return f"actions {self.actions}"
        return _KINDS[self.kind]

    def is_within(self, steps: float) -> bool:
        """Returns whether it was reached in at most about so many steps."""
        return self.steps <= _MORE_STEPS * steps

    def text(self, environment: str, steps: float) -> str:
        """Returns it for a row of an environment and a number of steps.

        What differs from the row is named: the version of the environment, the kind of
        return, and a larger number of steps.
        """
        words = [self.source]
        if self.kind != "data":
            words.append("one run" if self.runs == 1 else f"{self.runs} runs")
        if self.obstacle:
            words.append(self.obstacle)
        if not self.is_within(steps):
            words.append(f"{self.steps:,} steps")
        if self.environment != environment:
            words.append(self.environment.rpartition("-")[2])
        form = ".1f" if abs(self.value) >= 10 else ".3g"
        value = f"{self.value:{form}}".removesuffix(".0")
        return f"{value} ({', '.join(words)})"


@functools.cache
def read(path: pathlib.Path = CSV) -> tuple[Figure, ...]:
    """Returns all results."""
    with open(path, newline="", encoding="utf-8") as file:
        return tuple(
            Figure(
                row["source"],
                row["algorithm"],
                row["environment"],
                int(row["steps"]),
                float(row["value"]),
                int(row["runs"]),
                row["kind"],
                row["actions"],
                float(row["spread"]) if row["spread"] else None,
                int(row["episodes"] or 0),
            )
            for row in csv.DictReader(file)
        )


def of(
    figures: Iterable[Figure], algorithm: str, environment: str
) -> tuple[Figure, ...]:
    """Returns the results of an algorithm on all versions of an environment."""
    return tuple(
        figure
        for figure in figures
        if figure.algorithm == algorithm
        and _without_version(figure.environment) == _without_version(environment)
    )


def reference(figures: Sequence[Figure], steps: float) -> Figure | None:
    """Returns the best of the results with at most about so many steps, or None.

    Of equal ones, the first that gives a verdict; of these the one of most runs.
    """
    able = [figure for figure in figures if figure.is_within(steps)]
    return max(able, key=lambda x: (x.value, not x.obstacle, x.runs), default=None)


def of_settings(
    figures: Sequence[Figure], settings: str, steps: float
) -> Figure | None:
    """Returns what the source of settings published, or None.

    The best result within the steps, else that with the fewest.

    Args:
      figures: The results on an environment.
      settings: Where the settings are from, as in a `presets.Preset`.
      steps: The steps of the row.
    """
    own = [x for x in figures if re.match(rf"{re.escape(x.source)}\b", settings)]
    fewest = min(own, key=lambda figure: figure.steps, default=None)
    return reference(own, steps) or fewest


def _without_version(environment: str) -> str:
    return re.sub(r"-v\d+$", "", environment)
