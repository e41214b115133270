"""The mean return of an entry's runs, its interval, and what it is beside a reference.

Means are compared with means: most published results are means over runs.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmarks import published, score_curves
from tfrl.eval import statistics

_FEWEST_SEEDS = 3  # Of a verdict.
_MARGIN = 0.01  # Of the reference: what is within counts as level.


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The returns of an entry's runs.

    Attributes:
      returns: The mean return of each run's episodes.
      rounding: How far the returns may be from the exact ones.
      has_own_starts: Whether each run's episodes began in states of their own. Then the
        spread of the runs is that of seeds and of starts; else it is of seeds alone.
    """

    returns: tuple[float, ...]
    rounding: float
    has_own_starts: bool

    @property
    def mean(self) -> float:
        """The mean over the runs."""
        return float(np.mean(self.returns))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean; not a number for a single run."""
        if len(self.returns) == 1:
            return np.nan, np.nan
        low, high = statistics.mean_interval(self.returns)
        return low - self.rounding, high + self.rounding


def outcome(
    rows: Sequence[Mapping[str, str]],
    curves: Mapping[score_curves.Key, score_curves.Curve],
) -> Outcome:
    """Returns the outcome of an entry's runs.

    Args:
      rows: The rows of the runs.
      curves: The evaluations of runs; those with final returns give exact means.
    """
    known = [curves.get(score_curves.key_of(row)) for row in rows]
    exact = [curve.finals for curve in known if curve is not None and curve.finals.size]
    if len(exact) == len(rows):
        return Outcome(tuple(float(np.mean(each)) for each in exact), 0.0, True)
    texts = [row["return"] for row in rows]
    digits = max(len(text.partition(".")[2]) for text in texts)
    return Outcome(tuple(map(float, texts)), 0.5 * 10.0**-digits, False)


def verdict(found: Outcome, reference: published.Figure | None) -> str:
    """Returns on which side of a reference the interval lies, or why none is said.

    Args:
      found: The returns of the runs.
      reference: The reference; None leaves the text empty.
    """
    if reference is None:
        return ""
    if reference.obstacle:
        return f"none: {reference.obstacle}"
    number = len(found.returns)
    if number < _FEWEST_SEEDS:
        return f"none: {number} seed{'s' * (number > 1)}"
    low, high = found.interval
    margin = _MARGIN * abs(reference.value)
    if low > reference.value + margin:
        return "ahead"
    return "behind" if high < reference.value - margin else "level"


def count(verdicts: Iterable[str]) -> str:
    """Returns a sentence with the numbers of rows with each verdict."""
    numbers = Counter(each.partition(":")[0] for each in verdicts)
    return (
        f"Of {numbers.total()} rows, {numbers['ahead']} are ahead, {numbers['level']} "
        f"level and {numbers['behind']} behind; {numbers['none']} have a reference "
        f"that gives no verdict, and {numbers['']} have none."
    )
