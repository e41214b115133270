"""Which of two agents is better, from few runs: an exact test and an interval.

Both are about the probability of improvement (`statistics.probability_of_improvement`),
the mean over the tasks of the Mann-Whitney statistic. Its bootstrap interval is too
short for few runs: agents that are equal seem to differ in 7 of 100 comparisons of four
and four runs, and in 10 of five and five. The test here holds its level for any number
of runs, because under equal agents all assignments of the scores to the two agents are
equally likely (R. A. Fisher, "The Design of Experiments", 1935, section 21).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from tfrl.eval import statistics

if TYPE_CHECKING:
    import numpy.typing as npt

_ROUNDING = 1e-9  # Of sums of probabilities that are equal.
_REACH = NormalDist().inv_cdf(0.975)  # Standard deviations, for an interval of 95 %.
_HALVINGS = 50  # Of the interval in which an end is.


@dataclasses.dataclass(frozen=True)
class Improvement(statistics.Estimate):
    """A mean probability of improvement with its 95 % interval, and the test's result.

    Attributes:
      p_value: See `p_value`.
    """

    p_value: float


def p_value(
    *scores: npt.ArrayLike, num_assignments: int = 10_000, seed: int = 0
) -> float:
    """Returns the p-value of the permutation test of the probability of improvement.

    The chance, if both agents are equal on each task, that the mean probability of
    improvement is as far from one half as here, on either side. Scores may be equal.

    Args:
      *scores: In turn the scores of X and Y on each task, `[num_runs, 1]`.
      num_assignments: If there are at most this many assignments of the scores to the
        two agents, the test looks at all of them, and is exact; else it draws as many,
        and counts the actual one as one of them.
      seed: The seed of the draws.

    Returns:
      The p-value; 1 where no assignment differs.

    Raises:
      ValueError: If a side has another shape, or is empty.
    """
    rng = np.random.default_rng(seed)
    found, chance, is_exact = 0.0, np.zeros(1), True
    for x, y in zip(scores[::2], scores[1::2], strict=True):
        found += statistics.probability_of_improvement(x, y) - 0.5
        own, is_complete = _under_equality(x, y, num_assignments, rng)
        if is_complete and chance.size * own.size <= num_assignments:
            chance = np.add.outer(chance, own).ravel()
        else:
            is_exact = False
            chance = rng.choice(chance, num_assignments) + rng.choice(
                own, num_assignments
            )
    number = int(np.sum(np.abs(chance) >= abs(found) - _ROUNDING))
    return number / chance.size if is_exact else (number + 1) / (chance.size + 1)


def _under_equality(
    x: npt.ArrayLike, y: npt.ArrayLike, most: int, rng: np.random.Generator
) -> tuple[np.ndarray, bool]:
    """Returns what the probability less one half is for assignments of the scores.

    Args:
      x: The scores of X, `[num_runs_x, 1]`.
      y: The scores of Y, `[num_runs_y, 1]`.
      most: The largest number of assignments.
      rng: Draws them if there are more.

    Returns:
      The differences, and whether they are of all assignments.
    """
    pooled = np.concatenate([np.ravel(x), np.ravel(y)])
    num_x, number = np.size(x), pooled.size
    is_complete = math.comb(number, num_x) <= most
    if is_complete:
        chosen = np.array([*itertools.combinations(range(number), num_x)])
    else:
        chosen = rng.permuted(np.tile(np.arange(number), (most, 1)), axis=1)[:, :num_x]
    # Each score's number of others that it beats; those within X add up to a constant.
    beats = (
        statistics.probability_of_improvement(
            pooled[:, np.newaxis, np.newaxis], pooled[np.newaxis, :, np.newaxis]
        )
        * number
        - 0.5
    )
    within = num_x * (num_x - 1) / 2
    wins = beats[chosen].sum(axis=1) - within
    return wins / (num_x * (number - num_x)) - 0.5, is_complete


def improvement(*scores: npt.ArrayLike) -> Improvement:
    """Returns the mean probability of improvement over tasks, its interval and p-value.

    Method 5 of R. G. Newcombe, "Confidence intervals for an effect size measure based
    on the Mann-Whitney statistic. Part 2" (2006): the probabilities `p` that are within
    `z` of their own standard deviations of the one that was found. On a task with `m`
    and `n` runs the variance is

        p (1 - p) (1 + ((m + n) / 2 - 1) ((1 - p) / (2 - p) + p / (1 + p))) / (m n),

    which is exact for equal agents without equal scores. The variance of the mean is
    taken as if the tasks had the same probability, which is wider than if they differ.
    The probabilities that can be found are steps apart, and half a step is added for
    continuity. So the interval has a width also where each run of X is better than all
    runs of Y, and holds one half wherever the exact test of a single task finds no
    difference. Where many scores are equal it is wider than need be.

    Args:
      *scores: In turn the scores of X and Y on each task, `[num_runs, 1]`.

    Raises:
      ValueError: If a side has another shape, or is empty.
    """
    value = float(statistics.mean_probability_of_improvement(*scores))
    sizes = [len(np.asarray(each)) for each in scores]
    pairs = [*zip(sizes[::2], sizes[1::2], strict=True)]

    half_step = 0.5 / max(m * n for m, n in pairs) / len(pairs)

    def is_within(p: float) -> bool:
        reach = half_step + _REACH * math.sqrt(_variance(p, pairs))
        return abs(p - value) <= reach

    ends = []
    for outside in (0.0, 1.0):
        inside = value
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            inside, outside = (
                (middle, outside) if is_within(middle) else (inside, middle)
            )
        ends.append(inside)
    lower, upper = ends
    return Improvement(value, lower, upper, p_value(*scores))


def _variance(p: float, pairs: list[tuple[int, int]]) -> float:
    """Returns the variance of the mean over tasks with `m` and `n` runs each."""
    slope = (1 - p) / (2 - p) + p / (1 + p)
    each = [(1 + ((m + n) / 2 - 1) * slope) / (m * n) for m, n in pairs]
    return p * (1 - p) * sum(each) / len(pairs) ** 2
