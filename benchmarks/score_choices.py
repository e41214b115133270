"""Chooses agents from the score table: which one does best in a number of steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks import score_curves, score_table, score_verdicts
from benchmarks.score_entries import Entry

_BUDGETS = (30_000, 100_000, 300_000, 500_000, 1_000_000, 10_000_000)
_SLACK = 1.1  # Of a budget, as for references.


@dataclasses.dataclass(frozen=True)
class Candidate:
    """An agent on an environment.

    Attributes:
      agent: Its name.
      steps: The mean steps of its runs.
      seconds: The median processor seconds of a run.
      outcome: The returns of its runs.
    """

    agent: str
    steps: int
    seconds: float
    outcome: score_verdicts.Outcome

    def text(self) -> str:
        """Returns its name, its return and its seconds."""
        number = len(self.outcome.returns)
        seeds = "" if number > 1 else ", one seed"
        shown = score_table.return_text(self.outcome.mean)
        return f"{self.agent}: {shown} ({self.seconds:,.0f} s{seeds})"


def candidate(
    entry: Entry,
    rows: Sequence[Mapping[str, str]],
    curves: Mapping[score_curves.Key, score_curves.Curve],
) -> Candidate:
    """Returns the candidate of an entry.

    Args:
      entry: The entry.
      rows: The rows of its runs, at least one.
      curves: The evaluations of runs.
    """
    seconds = [float(row["processor_seconds"] or row["seconds"]) for row in rows]
    return Candidate(
        entry.agent,
        score_table.mean_steps(rows),
        float(np.median(seconds)),
        score_verdicts.outcome(rows, curves),
    )


def best(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Returns the candidate with the largest mean, and those that are level with it.

    Level are the means at most a standard deviation of its runs below the largest one;
    of a single run, only equal ones. They come in the order of their seconds.

    Args:
      candidates: At least one.
    """
    first = max(candidates, key=lambda each: each.outcome.mean)
    runs = first.outcome.returns
    low = first.outcome.mean - (np.std(runs, ddof=1) if len(runs) > 1 else 0.0)
    level = [x for x in candidates if x is not first and x.outcome.mean >= low]
    return [first, *sorted(level, key=lambda each: each.seconds)]


def choices(
    candidates: Sequence[Candidate],
) -> Iterator[tuple[int, list[Candidate]]]:
    """Yields the budgets at which more steps help, each with its best candidates.

    Args:
      candidates: Those of one environment.
    """
    before: list[Candidate] = []
    for budget in _BUDGETS:
        within = [each for each in candidates if each.steps <= _SLACK * budget]
        if len(within) < 2:
            continue
        found = best(within)
        if found != before:
            yield budget, found
        before = found


def table(
    rows_of: Mapping[Entry, Sequence[Mapping[str, str]]],
    curves: Mapping[score_curves.Key, score_curves.Curve],
) -> Iterator[str]:
    """Yields the lines of a table of all environments with several agents.

    Args:
      rows_of: The rows of each entry's runs, at least one of each.
      curves: The evaluations of runs.
    """
    of_environment: dict[str, list[Candidate]] = {}
    for entry, rows in rows_of.items():
        # Steps of agents that learn from recordings are updates, and of bandits rounds.
        if score_table.family_of(entry) not in ("Recordings", "Bandits"):
            of_environment.setdefault(entry.environment, []).append(
                candidate(entry, rows, curves)
            )
    yield "| environment | steps | best | level with it |"
    yield "|---|---|---|---|"
    for environment, candidates in of_environment.items():
        for budget, (first, *others) in choices(candidates):
            level = "; ".join(each.text() for each in others)
            yield f"| {environment} | {budget:,} | {first.text()} | {level} |"
