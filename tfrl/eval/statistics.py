"""Summarizes scores over a few seeds, with confidence intervals.

After R. Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical
Precipice" (2021): report the interquartile mean and a bootstrap confidence interval.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Summary:
    """Statistics of a set of scores.

    Attributes:
      mean: The mean.
      median: The median.
      lower_quartile: The quantile of 0.25.
      upper_quartile: The quantile of 0.75.
      interquartile_mean: See `interquartile_mean`.
      interval: The confidence interval of the mean.
      interquartile_mean_interval: The confidence interval of the interquartile mean.
    """

    mean: float
    median: float
    lower_quartile: float
    upper_quartile: float
    interquartile_mean: float
    interval: tuple[float, float]
    interquartile_mean_interval: tuple[float, float]


def summarize(scores: Any, confidence: float = 0.95, seed: int = 0) -> Summary:
    """Summarizes `scores`, one for each seed; see `bootstrap_interval` for the rest."""
    scores = _checked(scores)
    lower, median, upper = np.quantile(scores, [0.25, 0.5, 0.75])
    return Summary(
        mean=float(np.mean(scores)),
        median=float(median),
        lower_quartile=float(lower),
        upper_quartile=float(upper),
        interquartile_mean=float(interquartile_mean(scores)),
        interval=bootstrap_interval(scores, confidence=confidence, seed=seed),
        interquartile_mean_interval=bootstrap_interval(
            scores, interquartile_mean, confidence, seed=seed
        ),
    )


def interquartile_mean(scores: Any, axis: int = -1) -> Any:
    """Returns the mean of the scores without the lowest and the highest quarter.

    The number of scores in a quarter is rounded down.
    """
    ordered = np.sort(np.asarray(scores, np.float64), axis=axis)
    count = ordered.shape[axis]
    middle = np.arange(count // 4, count - count // 4)
    return np.mean(np.take(ordered, middle, axis=axis), axis=axis)


def bootstrap_interval(
    scores: Any,
    statistic: Callable[..., Any] = np.mean,
    confidence: float = 0.95,
    num_resamples: int = 10_000,
    seed: int = 0,
) -> tuple[float, float]:
    """Returns the percentile bootstrap interval of a statistic (B. Efron, 1979).

    Args:
      scores: Numbers, one for each seed.
      statistic: A function, called with an array `[num_resamples, len(scores)]` and
        `axis=-1`.
      confidence: The share of the resamples' statistics inside the interval.
      num_resamples: How often to draw `len(scores)` scores with replacement.
      seed: The seed of the draws.

    Returns:
      The lower and the upper end.

    Raises:
      ValueError: If there are no scores, or `confidence` is not between 0 and 1.
    """
    scores = _checked(scores)
    if not 0 < confidence < 1:
        raise ValueError(
            f"confidence: got {confidence}, expected a share between 0 and 1; write 95 "
            "percent as 0.95."
        )
    draws = np.random.default_rng(seed).choice(scores, (num_resamples, scores.size))
    tail = (1 - confidence) / 2
    low, high = np.quantile(statistic(draws, axis=-1), [tail, 1 - tail])
    return float(low), float(high)


def _checked(scores: Any) -> np.ndarray:
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 1 or not scores.size:
        raise ValueError(
            f"scores: got shape {scores.shape}, expected [num_seeds], not "
            "empty; pass one number for each seed."
        )
    return scores
