"""The numbers of a comparison of groups of runs; see `comparison`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrl.eval import rank_tests, statistics

if TYPE_CHECKING:
    import numpy.typing as npt

# Episodes and rollouts end so much later than planned.
BESIDE = 0.05
# The ends of the names of an estimate's entries in a record.
ENDS = ("", "_lower", "_upper")


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """The evaluations of one run.

    Attributes:
      name: The run's name, for messages.
      steps: The environment steps before each evaluation, ascending, `[E]`.
      seconds: The seconds of training before each, `[E]`.
      scores: The score of each, `[E]`.
    """

    name: str
    steps: np.ndarray
    seconds: np.ndarray
    scores: np.ndarray

    def at(self, steps: npt.ArrayLike) -> np.ndarray:
        """Returns the numbers of the evaluations that count at steps `[N]`, `[N]`.

        The nearest one that is before a step, or up to 5 % after it. It is -1 if there
        is none, or if the policy of the nearest one had not been trained yet.
        """
        wanted = np.reshape(steps, [-1, 1])
        found = np.abs(self.steps - wanted).argmin(axis=-1)
        found = found - (self.steps[found] > (1 + BESIDE) * wanted[:, 0])
        is_untrained = (self.steps[found] == 0) & (wanted[:, 0] > 0)
        return np.where(is_untrained, -1, found)


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    """A group of runs on one task, or on all of them.

    Attributes:
      group: The group's name.
      scores: The scores of its runs on each task, `[num_runs, N]`.
      steps: The environment steps of these, `[N]`; NaN for all tasks.
      seconds: The median of its runs' seconds there, `[N]`.
      ends: The steps of each run's evaluation that counts as its last, `[num_runs]`;
        NaN for all tasks.
    """

    group: str
    scores: Sequence[np.ndarray]
    steps: np.ndarray
    seconds: np.ndarray
    ends: np.ndarray

    @property
    def last(self) -> list[np.ndarray]:
        """The last scores on each task, `[num_runs, 1]`."""
        return [scores[:, -1:] for scores in self.scores]

    def over(self, other: Row) -> list[np.ndarray]:
        """Returns the last scores of both on each task, in turn."""
        return [x for pair in zip(self.last, other.last, strict=True) for x in pair]


@dataclasses.dataclass(frozen=True, eq=False)
class Section:
    """The groups on one task, or on all tasks together.

    Attributes:
      title: The name of the task.
      rows: The groups. The first has the highest mean probability of improvement over
        all others.
      improvements: The probability that the first group is an improvement over each
        other one, by its name.
      has_mean: Whether the scores mean the same on all its tasks.
    """

    title: str
    rows: Sequence[Row]
    improvements: Mapping[str, rank_tests.Improvement]
    has_mean: bool

    @functools.cached_property
    def records(self) -> list[dict[str, Any]]:
        """The numbers of each group by their names; NaN for what is unknown."""
        found = []
        for row in self.rows:
            iqm, best = mean(row.last), max(map(np.max, row.scores))
            record: dict[str, Any] = {"environment": self.title, "group": row.group}
            record["seeds"] = min(map(len, row.scores))
            record |= _numbers("iqm", iqm if self.has_mean else None)
            record["best"] = best if self.has_mean else np.nan
            record |= {"steps": np.min(row.ends), "seconds": row.seconds[-1]}
            improvement = self.improvements.get(row.group)
            record |= _numbers("improvement", improvement)
            record["p_value"] = improvement.p_value if improvement else np.nan
            found.append(record)
        return found


def row_of(name: str, runs: Sequence[Curve], limit: float, *ends: float) -> Row:
    """Returns the row of a group on a task, at the evaluations of its first run.

    Evaluations of the first run at which another one's policy has not been evaluated
    after any training are left out.
    """
    (low, high), planned = ends, runs[0].steps
    steps = np.append(planned[planned < limit], limit)
    steps = steps[np.all([run.at(steps) >= 0 for run in runs], axis=0)]
    chosen = [(run, run.at(steps)) for run in runs]
    scores = np.stack([run.scores[i] for run, i in chosen])
    scores = np.where(np.isnan(scores), -np.inf, (scores - low) / (high - low))
    seconds = np.median([run.seconds[i] for run, i in chosen], axis=0)
    last = np.array([run.steps[i[-1]] for run, i in chosen])
    return Row(name, [scores], steps, seconds, last)


def section_of(title: str, rows: Sequence[Row], *, has_mean: bool) -> Section:
    """Orders the groups, and compares the first one with each other."""
    improvement = statistics.mean_probability_of_improvement

    def rank(row: Row) -> tuple[float, float]:
        each = [improvement(*row.over(other)) for other in rows]
        return -float(np.mean(each)), -float(np.mean(np.concatenate(row.last)))

    first, *others = ordered = sorted(rows, key=rank)
    improvements = {x.group: _improvement(first.over(x)) for x in others}
    return Section(title, ordered, improvements, has_mean)


def mean(scores: Sequence[np.ndarray]) -> statistics.Estimate:
    """Returns the interquartile mean of scores of tasks, `[N]`."""
    return estimate(statistics.pooled_interquartile_mean, scores)


def _improvement(scores: Sequence[np.ndarray]) -> rank_tests.Improvement:
    """Returns a probability of improvement, with NaN beside it for a single run."""
    found = rank_tests.improvement(*scores)
    if min(map(len, scores)) > 1:
        return found
    return dataclasses.replace(found, lower=np.nan, upper=np.nan, p_value=np.nan)


def estimate(
    statistic: Callable[..., Any], scores: Sequence[np.ndarray]
) -> statistics.Estimate:
    """Returns a statistic with its interval, whose ends are NaN for a single run."""
    num_resamples = 10_000 if scores[0].shape[1] == 1 else 2_000
    found = statistics.stratified_bootstrap(
        statistic, *scores, num_resamples=num_resamples
    )
    unknown = np.full_like(found.value, np.nan)
    is_single = min(map(len, scores)) == 1
    return statistics.Estimate(found.value, unknown, unknown) if is_single else found


def _numbers(name: str, found: statistics.Estimate | None) -> dict[str, float]:
    """Returns an estimate as entries of a record."""
    known = (found.value, found.lower, found.upper) if found else (np.nan,) * 3
    values = [float(np.squeeze(x)) for x in known]
    return dict(zip([name + end for end in ENDS], values, strict=True))
