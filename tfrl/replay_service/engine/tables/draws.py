"""Which samples follow when items are deleted after so many of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import selectors as selectors_lib


class Draws(NamedTuple):
    """Samples as they are planned, none of them counted yet.

    Attributes:
      rows: `[N]` integers.
      probabilities: `[N]` float64.
      sizes: `[N]` int64, of the table before each draw.
      last: `[K]` integers, the rows whose items these samples delete.
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
    """Returns the next samples, at least one and at most `n`.

    Args:
      sampler: The selector.
      columns: The items, at least `min_size` of them, and at least one.
      n: How many samples are wanted.
      limit: The number of samples after which an item is deleted.
      min_size: The size below which nothing is sampled.
      random: For a random selector.
    """
    if isinstance(sampler, selectors_lib.RandomSelector):
        rows = sampler.draw(n, random)
        return _plan_random(sampler, columns, rows, limit, min_size)
    size = columns.size
    # The first item is drawn until it is gone, then the next one.
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
    """Returns the samples that draws from the present items amount to.

    Drawing from all items, and again if the item is gone meanwhile, is drawing from
    those that are left.
    """
    times = np.minimum(columns.times_sampled[rows], limit - 1) + ranks(rows)
    rows, times = rows[times < limit], times[times < limit]
    last = times + 1 >= limit
    masses, total = sampler.masses(rows)
    sizes = columns.size - _sum_before(last.astype(np.int64))
    lost = _sum_before(np.where(last, masses, 0.0))
    # Enough of the total has to be left for the difference to be exact.
    good = (sizes >= min_size) & (lost <= 0.5 * total)
    stop = rows.size if good.all() else int(good.argmin())
    probabilities = masses[:stop] / (total - lost[:stop])
    return Draws(rows[:stop], probabilities, sizes[:stop], rows[:stop][last[:stop]])


def ranks(rows: np.ndarray) -> np.ndarray:
    """Returns for every row `[N]` how often it came before in the array."""
    order = rows.argsort(kind="stable")
    ordered = rows[order]
    places = np.arange(rows.size)
    starts = np.where(np.r_[True, ordered[1:] != ordered[:-1]], places, 0)
    result = np.empty(rows.size, np.int64)
    result[order] = places - np.maximum.accumulate(starts)
    return result


def _sum_before(values: np.ndarray) -> np.ndarray:
    """Returns the running sum without the present value."""
    return values.cumsum() - values
