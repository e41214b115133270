"""How a table finds the items to sample or to remove, a batch at a time.

A selector keeps what it needs beside a table's `Columns`. An ordered one says which
items come first (`first`); a random one draws them (`draw`). A table whose sampler and
remover are of the same strategy has one selector for both.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable

import numpy as np

from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import sum_tree


class Selector(abc.ABC):
    """The base class of the selectors, which know the items of some columns."""

    def __init__(self, columns: columns_lib.Columns) -> None:
        """Creates a selector of columns that are still empty."""
        self._columns = columns

    @abc.abstractmethod
    def insert(self, rows: np.ndarray) -> None:
        """Adds rows `[N]` whose items have been written."""

    def replace(self, rows: np.ndarray) -> None:
        """Notes that new items have been written over the old ones of rows `[N]`."""
        self.insert(rows)

    def update(self, rows: np.ndarray) -> None:
        """Notes that rows `[N]`, some maybe twice, have new priorities."""
        # Most selectors do not look at priorities.
        return

    def delete(self, rows: np.ndarray) -> None:
        """Notes that the items of rows `[N]` have been freed."""
        # Some selectors find out when they meet one.
        return

    @abc.abstractmethod
    def clear(self) -> None:
        """Forgets all items."""

    def check(self, priorities: np.ndarray) -> None:
        """Raises ValueError if priorities `[N]`, finite and >= 0, cannot be taken."""
        return

    def state(self) -> dict[str, np.ndarray]:
        """Returns what cannot be told from the columns."""
        return {}

    def restore(self, rows: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        """Adds the rows of all items, the oldest first, as `state` was when saved."""
        self.insert(rows)


def checked(priorities: np.ndarray, selectors: Iterable[Selector]) -> np.ndarray:
    """Returns priorities as `[N]` float64 that all selectors can take.

    Raises:
      ValueError: If one is negative or not finite, or too large for a selector.
    """
    priorities = np.asarray(priorities, np.float64)
    if priorities.size == 0:
        return priorities
    # NaN makes the least and the greatest NaN, and both comparisons false.
    if not (priorities.min() >= 0.0 and priorities.max() < np.inf):
        good = (priorities >= 0.0) & (priorities < np.inf)
        raise ValueError(
            f"priorities: {priorities[good.argmin()]} came; expected finite numbers "
            "that are not negative. Clip or replace it before it is sent."
        )
    for selector in selectors:
        selector.check(priorities)
    return priorities


class OrderedSelector(Selector):
    """A selector with an order of all items."""

    @abc.abstractmethod
    def first(self, n: int) -> np.ndarray:
        """Returns the rows of the first `min(n, size)` items, in order."""


class RandomSelector(Selector):
    """A selector with a probability for every item."""

    @abc.abstractmethod
    def draw(self, n: int, random: np.random.Generator) -> np.ndarray:
        """Returns `[n]` rows, drawn with replacement; there must be items.

        Drawing several at once takes the same random numbers as one after another.
        """

    @abc.abstractmethod
    def masses(self, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """Returns what, divided by the second number, is the probability of rows."""


class InsertionOrder(OrderedSelector):
    """The base class of selectors by the order of inserts.

    The keys of items are appended to an array, from which those of deleted items are
    dropped when they are met where items are taken, or when they are most of it.
    """

    def __init__(self, columns: columns_lib.Columns) -> None:
        """Creates a selector of columns that are still empty."""
        super().__init__(columns)
        self.clear()

    def clear(self) -> None:
        """Forgets all items."""
        self._keys = np.empty(0, np.uint64)
        self._start = self._stop = 0

    def insert(self, rows: np.ndarray) -> None:
        """Adds rows `[N]` whose items have been written."""
        if self._stop + rows.size > self._keys.size:
            self._compact(rows.size)
        self._keys[self._stop : self._stop + rows.size] = self._columns.keys[rows]
        self._stop += rows.size

    def replace(self, rows: np.ndarray) -> None:
        """Notes that new items have been written over the old ones of rows `[N]`."""
        self.insert(rows)
        self._drop_void(rows.size)

    def delete(self, rows: np.ndarray) -> None:
        """Notes that the items of rows `[N]` have been freed."""
        self._drop_void(rows.size)

    def first(self, n: int) -> np.ndarray:
        """Returns the rows of the first `min(n, size)` items, in order."""
        n = min(n, self._columns.size)
        if self._stop - self._start > 2 * self._columns.size + 1024:
            self._compact(0)
        width = n
        while True:
            ahead = self._ahead(width)
            valid = self._columns.holds(ahead)
            count = np.count_nonzero(valid)
            if count == ahead.size == n:
                return columns_lib.row_of(ahead)
            if count >= n:
                return columns_lib.row_of(ahead[valid][:n])
            width *= 2

    def by_age(self) -> np.ndarray:
        """Returns the rows of all items, the oldest first."""
        keys = self._keys[self._start : self._stop]
        return columns_lib.row_of(keys[self._columns.holds(keys)])

    @abc.abstractmethod
    def _ahead(self, width: int) -> np.ndarray:
        """Returns the next `width` keys, void ones among them, in order."""

    @abc.abstractmethod
    def _drop_void(self, n: int) -> None:
        """Drops the next `n` keys if they are all void."""

    def _compact(self, extra: int) -> None:
        """Drops all void keys, and makes place for `extra` more."""
        keys = self._keys[self._start : self._stop]
        keys = keys[self._columns.holds(keys)]
        self._keys = np.empty(max(256, (keys.size + extra) * 3 // 2), np.uint64)
        self._keys[: keys.size] = keys
        self._start, self._stop = 0, keys.size


class OldestFirst(InsertionOrder):
    """Items in the order of their inserts."""

    def _ahead(self, width: int) -> np.ndarray:
        """Returns the next `width` keys, void ones among them, in order."""
        return self._keys[self._start : min(self._start + width, self._stop)]

    def _drop_void(self, n: int) -> None:
        """Drops the next `n` keys if they are all void."""
        ahead = self._ahead(n)
        if not self._columns.holds(ahead).any():
            self._start += ahead.size


class NewestFirst(InsertionOrder):
    """Items in the opposite order of their inserts."""

    def _ahead(self, width: int) -> np.ndarray:
        """Returns the next `width` keys, void ones among them, in order."""
        return self._keys[max(self._start, self._stop - width) : self._stop][::-1]

    def _drop_void(self, n: int) -> None:
        """Drops the next `n` keys if they are all void."""
        ahead = self._ahead(n)
        if not self._columns.holds(ahead).any():
            self._stop -= ahead.size


class UniformSelector(RandomSelector):
    """All items with the same probability: their rows in an array without gaps."""

    def __init__(self, columns: columns_lib.Columns) -> None:
        """Creates a selector of columns that are still empty."""
        super().__init__(columns)
        self._rows = np.empty(0, np.int32)
        self._places = np.empty(0, np.int32)  # Of each row, in `_rows`.
        self._size = 0
        columns.when_grown(self._grow)

    def clear(self) -> None:
        """Forgets all items."""
        self._size = 0

    def insert(self, rows: np.ndarray) -> None:
        """Adds rows `[N]` whose items have been written."""
        stop = self._size + rows.size
        self._rows[self._size : stop] = rows
        self._places[rows] = np.arange(self._size, stop)
        self._size = stop

    def replace(self, rows: np.ndarray) -> None:
        """The rows stay where they are."""

    def delete(self, rows: np.ndarray) -> None:
        """Fills the gaps with the last rows."""
        size = self._size - rows.size
        places = self._places[rows]
        stays = np.ones(rows.size, bool)
        stays[places[places >= size] - size] = False
        moved = self._rows[size : self._size][stays]
        gaps = places[places < size]
        self._rows[gaps] = moved
        self._places[moved] = gaps
        self._size = size

    def draw(self, n: int, random: np.random.Generator) -> np.ndarray:
        """Returns `[n]` rows, drawn with replacement; there must be items."""
        # Below 2**53 the product never rounds up to the size.
        places = (random.random(n) * self._size).astype(np.int64)
        return self._rows.take(places).astype(np.int64)

    def masses(self, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """Returns what, divided by the second number, is the probability of rows."""
        return np.ones(rows.shape), float(self._size)

    def state(self) -> dict[str, np.ndarray]:
        """Returns the order of the rows, on which the draws depend."""
        return {"rows": self._rows[: self._size].copy()}

    def restore(self, rows: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        """Adds the rows of all items, as they were."""
        self.insert(arrays.get("rows", rows))

    def _grow(self, capacity: int) -> None:
        """Makes the arrays as long as the columns."""
        self._rows = np.resize(self._rows, capacity)
        self._places = np.resize(self._places, capacity)


class PrioritizedSelector(RandomSelector):
    """Items with probabilities in proportion to a power of their priorities."""

    def __init__(self, columns: columns_lib.Columns, exponent: float) -> None:
        """Creates a selector of columns that are still empty."""
        super().__init__(columns)
        self._exponent = exponent
        self._tree = sum_tree.SumTree()
        columns.when_grown(self._tree.grow)

    def clear(self) -> None:
        """Forgets all items."""
        self._tree.clear()

    def insert(self, rows: np.ndarray) -> None:
        """Adds rows `[N]` whose items have been written."""
        self._tree.set(rows, self._power(self._columns.priorities[rows]))

    def update(self, rows: np.ndarray) -> None:
        """Notes that rows `[N]`, some maybe twice, have new priorities."""
        self.insert(rows)

    def delete(self, rows: np.ndarray) -> None:
        """Notes that the items of rows `[N]` have been freed."""
        self._tree.set(rows, 0.0)

    def draw(self, n: int, random: np.random.Generator) -> np.ndarray:
        """Returns `[n]` rows, drawn with replacement; there must be items."""
        uniforms = random.random((n, self._tree.depth))
        if self._tree.total > 0.0:
            return self._tree.draw(uniforms)
        rows = self._columns.living()
        return rows[(uniforms[:, 0] * rows.size).astype(np.int64)]

    def masses(self, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """Returns what, divided by the second number, is the probability of rows."""
        total = self._tree.total
        if total > 0.0:
            return self._tree.weights(rows), total
        return np.ones(rows.shape), float(self._columns.size)

    def check(self, priorities: np.ndarray) -> None:
        """Raises ValueError if a power of a priority is too large to be added up."""
        with np.errstate(over="ignore"):
            weights = self._power(priorities)
        if weights.size and not weights.max() <= sum_tree.LARGEST_WEIGHT:
            worst = priorities[np.argmax(weights)]
            raise ValueError(
                f"priorities: {worst} to the power {self._exponent} came; expected at "
                f"most {sum_tree.LARGEST_WEIGHT:.0e}, so that many can be added up. "
                "Scale the priorities, for example by their mean."
            )

    def _power(self, priorities: np.ndarray) -> np.ndarray:
        """Returns the weights of items; of priority 0 it is 0 with any exponent."""
        if self._exponent == 1.0:
            return priorities
        if self._exponent > 0.0:
            return priorities**self._exponent
        positive = priorities > 0.0
        weights = np.zeros(priorities.shape)
        np.power(priorities, self._exponent, out=weights, where=positive)
        return weights
