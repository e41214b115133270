"""The mean return of an entry's runs, its interval, and what it is beside a reference.

Means are compared with means: most published results are means over runs. A reference
is a draw, too, so a verdict takes the interval of the difference.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import published, score_curves
from tfrl.eval import statistics

if TYPE_CHECKING:
    import numpy.typing as npt

_FEWEST_SEEDS = 3  # Of a verdict.
_MARGIN = 0.01  # Of the reference: what is within counts as level.
# Of the interval of a difference. A reference without a spread of its own needs a wider
# one: skewed returns give a few runs a deviation that is often too small.
_CONFIDENCE = 0.95
_CONFIDENCE_WITHOUT_SPREAD = 0.99


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The returns of an entry's runs.

    Attributes:
      returns: The mean return of each run's episodes.
      rounding: How far the returns may be from the exact ones.
      shared_starts: The number of the episodes, if those of all runs began in the same
        states: then the spread of the runs is of seeds alone. 0 if each run had states
        of its own.
    """

    returns: tuple[float, ...]
    rounding: float = 0.0
    shared_starts: int = 0

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


@dataclasses.dataclass(frozen=True)
class Reference:
    """What returns are compared with: numbers, or arrays `[...]` of many cases.

    Attributes:
      value: The mean return.
      runs: The number of runs; infinity if the mean is exact.
      deviation: The standard deviation of the runs; None if it is unknown.
      error: The standard error of the difference by the chance of starts that the
        spread of our runs does not show.
    """

    value: Any
    runs: float
    deviation: Any = None
    error: float = 0.0


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
        return Outcome(tuple(float(np.mean(each)) for each in exact))
    texts = [row["return"] for row in rows]
    digits = max(len(text.partition(".")[2]) for text in texts)
    starts = int(rows[0]["episodes"])
    return Outcome(tuple(map(float, texts)), 0.5 * 10.0**-digits, starts)


def difference(
    returns: npt.ArrayLike, reference: Reference
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the interval of the difference of our mean and a reference's.

    The runs of a reference without a deviation deviate as ours do: with `n` and `m`
    runs the variance of the difference is `s^2 (1 / n + 1 / m)`, with `n - 1` degrees
    of freedom, and the interval is one of 99 %. Otherwise it is one of 95 %, with the
    larger of the variances of the pooled t-test and of Welch's ("The generalization of
    'Student's' problem when several different population variances are involved",
    1947), and Welch's degrees of freedom, rounded down. The pooled one holds where a
    deviation is small by chance, as of five runs at the highest return; Welch's where
    agents deviate differently.

    Args:
      returns: Our runs, `[..., n]`, at least two.
      reference: The reference.

    Returns:
      The lower and the upper end, `[...]`.
    """
    returns = np.asarray(returns)
    n, m = returns.shape[-1], reference.runs
    own = np.var(returns, axis=-1, ddof=1)
    if reference.deviation is None:
        variance, freedom = own * (1 / n + 1 / m), np.asarray(n - 1)
        confidence = _CONFIDENCE_WITHOUT_SPREAD
    else:
        other = np.square(reference.deviation)
        x, y = own / n, other / m
        pooled = ((n - 1) * own + (m - 1) * other) / (n + m - 2) * (1 / n + 1 / m)
        variance, confidence = np.maximum(pooled, x + y), _CONFIDENCE
        shares = np.maximum(x**2 / (n - 1) + y**2 / (m - 1), np.finfo(float).tiny)
        freedom = np.clip((x + y) ** 2 / shares, min(n, m) - 1, n + m - 2)
    share = (1 + confidence) / 2
    by_runs = _quantiles(share, freedom) * np.sqrt(variance)
    by_starts = NormalDist().inv_cdf(share) * reference.error
    reach = np.hypot(by_runs, by_starts)
    middle = np.mean(returns, axis=-1) - reference.value
    return middle - reach, middle + reach


def sides(
    returns: npt.ArrayLike, reference: Reference, slack: npt.ArrayLike = 0.0
) -> np.ndarray:
    """Returns 1 where our mean is above a reference, -1 where it is below, else 0.

    The whole interval of the difference lies on that side, and a single run also lies
    beyond all of ours: one among them may be of the same agent. Nothing is said where
    no run deviates, because then nobody knows by how much runs do.

    Args:
      returns: Our runs, `[..., n]`, at least two.
      reference: The reference.
      slack: The difference that counts as none.
    """
    low, high = difference(returns, reference)
    is_above, is_below = low > slack, high < -np.asarray(slack)
    if reference.runs == 1:
        is_above &= np.min(returns, axis=-1) > reference.value
        is_below &= np.max(returns, axis=-1) < reference.value
    return np.where(low < high, is_above * 1 - is_below, 0)


def _quantiles(share: float, freedom: np.ndarray) -> np.ndarray:
    known, places = np.unique(np.floor(freedom), return_inverse=True)
    return np.array([_quantile(share, float(x)) for x in known])[places]


_quantile = functools.cache(statistics.student_quantile)


def beside(found: Outcome, figure: published.Figure) -> Reference:
    """Returns a published result as a reference of an outcome.

    A single run's spread is over its episodes, so that it tells by how much means over
    episodes deviate, of the reference and of ours where the starts are shared. The mean
    of recorded episodes is exact.
    """
    if figure.kind == "data":
        return Reference(figure.value, math.inf)
    error = 0.0
    if figure.episodes and figure.spread is not None:
        shares = [1 / x for x in (figure.episodes, found.shared_starts) if x]
        error = figure.spread * math.sqrt(sum(shares))
    return Reference(figure.value, figure.runs, figure.deviation, error)


def verdict(
    found: Outcome,
    reference: published.Figure | None,
    own: published.Figure | None = None,
) -> str:
    """Returns on which side of a reference the runs are, or why none is said.

    Args:
      found: The returns of the runs.
      reference: The reference; None leaves the text empty.
      own: What the source of the runs' settings published, or None.
    """
    if reference is None:
        return ""
    if reference.obstacle:
        return f"none: {reference.obstacle}"
    if own is not None and own.settings != reference.settings:
        return "none: other settings"
    number = len(found.returns)
    if number < _FEWEST_SEEDS:
        return f"none: {number} seed{'s' * (number > 1)}"
    slack = _MARGIN * abs(reference.value) + found.rounding
    if abs(found.mean - reference.value) <= slack:
        return "level"
    compared = beside(found, reference)
    if not (compared.deviation or np.ptp(found.returns)):
        return "none: equal returns"
    side = sides(found.returns, compared, slack)
    return {1: "ahead", 0: "level", -1: "behind"}[int(side)]


def text(
    found: Outcome, reference: published.Figure | None, own: published.Figure | None
) -> str:
    """Returns the verdict, with the interval of the difference and the runs of both.

    For the arguments see `verdict`.
    """
    word = verdict(found, reference, own)
    if reference is None or word.startswith("none"):
        return word
    low, high = difference(found.returns, beside(found, reference))
    runs = f"{len(found.returns)} runs"
    if reference.kind != "data":
        runs = f"{len(found.returns)} and {reference.runs} runs"
    ends = [_digits(low - found.rounding), _digits(high + found.rounding)]
    return f"{word} ({' to '.join(ends)}; {runs})"


def _digits(value: Any) -> str:
    size = abs(float(value))
    return f"{float(value):+,.{0 if size >= 100 else 1 if size >= 1 else 3}f}"


def count(verdicts: Iterable[str]) -> str:
    """Returns a sentence with the numbers of rows with each verdict."""
    numbers = Counter(each.partition(":")[0] for each in verdicts)
    return (
        f"Of {numbers.total()} rows, {numbers['ahead']} are ahead, {numbers['level']} "
        f"level and {numbers['behind']} behind; {numbers['none']} have a reference "
        f"that gives no verdict, and {numbers['']} have none."
    )
