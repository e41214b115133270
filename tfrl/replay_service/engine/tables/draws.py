"""Plans samples from a table that deletes items after a number of samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import selectors as selectors_lib


class Draws(NamedTuple):
    """Planned samples, which the table has not counted yet.

    Attributes:
      rows: `[N]` integers, the row of each sample.
      probabilities: `[N]` float64, the probability of each sample.
      sizes: `[N]` int64, the size of the table before each sample.
      last: `[K]` integers, the rows of the items that these samples delete.
    """

    rows: np.ndarray
    probabilities: np.ndarray
    sizes: np.ndarray
    last: np.ndarray


def plan(
    sampler: selectors_lib.OrderedSelector | selectors_lib.RandomSelector,
    columns: columns_lib.Columns,
    n: int,
    *,
    limit: int,
    min_size: int,
    random: np.random.Generator,
) -> Draws:
    """Plans the next samples, at least one and at most `n`.

    Args:
      sampler: The selector of the items to sample.
      columns: The items; at least `min_size`, and at least one.
      n: The maximum number of samples.
      limit: The number of samples after which an item is deleted.
      min_size: The minimum size of the table for sampling.
      random: The source of randomness for a random selector.
    """
    if isinstance(sampler, selectors_lib.RandomSelector):
        rows = sampler.draw(n, random)
        return _plan_random(sampler, columns, rows, limit, min_size)
    size = columns.size
    # The first item is drawn until it is deleted, then the next one.
    items = sampler.first(min(n, size - min_size + 1))
    left = np.maximum(limit - columns.times_sampled[items], 1)
    rows = items.repeat(left)[:n]
    sizes = (size - np.arange(items.size)).repeat(left)[:n]
    gone = np.count_nonzero(left.cumsum() <= rows.size)
    return Draws(rows, np.ones(rows.size), sizes, items[:gone])


def _plan_random(
    sampler: selectors_lib.RandomSelector,
    columns: columns_lib.Columns,
    rows: np.ndarray,
    limit: int,
    min_size: int,
) -> Draws:
    """Plans samples, given `rows` drawn from all items with replacement.

    Draws of items that earlier samples have deleted are dropped, so each sample is
    drawn from the items that remain.
    """
    times = np.minimum(columns.times_sampled[rows], limit - 1) + ranks(rows)
    rows, times = rows[times < limit], times[times < limit]
    last = times + 1 >= limit
    masses, total = sampler.masses(rows)
    sizes = columns.size - _sum_before(last.astype(np.int64))
    lost = _sum_before(np.where(last, masses, 0.0))
    # The difference below is only accurate while much of the total is left.
    good = (sizes >= min_size) & (lost <= 0.5 * total)
    stop = rows.size if good.all() else int(good.argmin())
    probabilities = masses[:stop] / (total - lost[:stop])
    return Draws(rows[:stop], probabilities, sizes[:stop], rows[:stop][last[:stop]])


def ranks(rows: np.ndarray) -> np.ndarray:
    """Counts, for every row `[N]`, its earlier occurrences in the array."""
    order = rows.argsort(kind="stable")
    ordered = rows[order]
    places = np.arange(rows.size)
    starts = np.where(np.r_[True, ordered[1:] != ordered[:-1]], places, 0)
    result = np.empty(rows.size, np.int64)
    result[order] = places - np.maximum.accumulate(starts)
    return result


def _sum_before(values: np.ndarray) -> np.ndarray:
    """Returns, for every value, the sum of the values before it."""
    return values.cumsum() - values
