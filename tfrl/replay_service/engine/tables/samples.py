"""The samples that a table returns, and their plan if samples delete items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import selectors as selectors_lib


class Samples(NamedTuple):
    """Sampled items, in the order in which they were drawn.

    Attributes:
      keys: `[N]` uint64.
      probabilities: `[N]` float64, the probability of the item when it was drawn; 1 for
        deterministic samplers.
      table_sizes: `[N]` int64, the size of the table when the item was drawn.
      priorities: `[N]` float64.
      times_sampled: `[N]` int32, including this sample.
      payloads: `[N, 2]` int32.
      removed: `[K, 2]` int32, the payloads of the items that these samples deleted.
    """

    keys: np.ndarray
    probabilities: np.ndarray
    table_sizes: np.ndarray
    priorities: np.ndarray
    times_sampled: np.ndarray
    payloads: np.ndarray
    removed: np.ndarray


def pairs(payloads: np.ndarray) -> np.ndarray:
    """Converts payloads from `[N]` int64 to `[N, 2]` int32."""
    return payloads.view(np.int32).reshape(-1, 2)


def joined(parts: Sequence[Samples]) -> Samples:
    """Concatenates samples."""
    if len(parts) == 1:
        return parts[0]
    return Samples(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


#: The payloads of no items.
NO_PAYLOADS = np.zeros(0, np.int64)
NOTHING = Samples(
    keys=np.zeros(0, np.uint64),
    probabilities=np.zeros(0),
    table_sizes=np.zeros(0, np.int64),
    priorities=np.zeros(0),
    times_sampled=np.zeros(0, np.int32),
    payloads=pairs(NO_PAYLOADS),
    removed=pairs(NO_PAYLOADS),
)


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
