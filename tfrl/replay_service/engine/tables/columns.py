"""The items of a table, as a column per property.

An item lives in a row, and its key says which: the number of its insert (modulo 2**32)
in the upper half and the row in the lower, so that no dictionary is needed to find it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

NO_KEY = np.uint64(2**64 - 1)  # Of a row without an item.
_ROW_BITS = np.uint64(32)
_ROW_MASK = np.uint64(2**32 - 1)
_FIRST_CAPACITY = 256


class Columns:
    """The rows of a table's items.

    Attributes:
      size: How many items there are.
      capacity: How many rows the columns have.
      keys: `[capacity]` uint64; `NO_KEY` where there is no item.
      priorities: `[capacity]` float64.
      times_sampled: `[capacity]` int32.
      payloads: `[capacity]` int64, each two int32 put together.
      episodes: `[capacity]` int64.
      stamps: `[capacity]` int64, the number of the last insert or update of the item,
        counted over all items; -1 where there is no item.
    """

    def __init__(self, max_size: int) -> None:
        """Creates columns for a table of at most `max_size` items."""
        self._max_size = max_size
        self._on_grow: list[Callable[[int], None]] = []
        self._allocate(0)
        self.clear()
        self.insert_number = 0
        self.stamp = 0

    def _allocate(self, capacity: int) -> None:
        """Makes empty columns."""
        self.capacity = capacity
        self.keys = np.full(capacity, NO_KEY, np.uint64)
        self.priorities = np.zeros(capacity)
        self.times_sampled = np.zeros(capacity, np.int32)
        self.payloads = np.zeros(capacity, np.int64)
        self.episodes = np.zeros(capacity, np.int64)
        self.stamps = np.full(capacity, -1, np.int64)
        self._free = np.zeros(capacity, np.int32)

    def clear(self) -> None:
        """Removes all items; their keys do not come again."""
        self.size = 0
        self.used = 0  # Rows from here on have never held an item.
        self._num_free = 0
        self.keys[:] = NO_KEY
        self.stamps[:] = -1

    def when_grown(self, grow: Callable[[int], None]) -> None:
        """Has `grow` called with the capacity, now and whenever it changes."""
        self._on_grow.append(grow)
        grow(self.capacity)

    def reserve(self, capacity: int) -> None:
        """Makes at least `capacity` rows."""
        if capacity <= self.capacity:
            return
        # By doubling, but not far beyond what a full table needs.
        doubled = min(max(2 * self.capacity, _FIRST_CAPACITY), self._max_size + 1024)
        old = self._arrays()
        self._allocate(max(capacity, doubled))
        for before, after in zip(old, self._arrays(), strict=True):
            after[: before.size] = before
        for grow in self._on_grow:
            grow(self.capacity)

    def _arrays(self) -> list[np.ndarray]:
        """Returns all that is as long as the capacity."""
        return [
            self.keys,
            self.priorities,
            self.times_sampled,
            self.payloads,
            self.episodes,
            self.stamps,
            self._free,
        ]

    def take_rows(self, n: int) -> np.ndarray:
        """Returns `[n]` rows without items, the ones freed last first."""
        again = min(n, self._num_free)
        fresh = n - again
        self.reserve(self.used + fresh)
        self._num_free -= again
        rows = np.empty(n, np.int64)
        rows[:again] = self._free[self._num_free : self._num_free + again][::-1]
        rows[again:] = np.arange(self.used, self.used + fresh)
        self.used += fresh
        self.size += n
        return rows

    def write(
        self,
        rows: np.ndarray,
        priorities: np.ndarray,
        payloads: np.ndarray,
        episodes: np.ndarray,
    ) -> None:
        """Puts new items into rows, which get new keys; all arrays are `[N]`."""
        numbers = np.arange(
            self.insert_number, self.insert_number + rows.size, dtype=np.uint64
        )
        self.insert_number += rows.size
        # The shift drops what is beyond 2**32.
        self.keys[rows] = (numbers << _ROW_BITS) | rows.astype(np.uint64)
        self.times_sampled[rows] = 0
        self.payloads[rows] = payloads
        self.episodes[rows] = episodes
        self.set_priorities(rows, priorities)

    def set_priorities(self, rows: np.ndarray, priorities: np.ndarray) -> None:
        """Sets priorities; of a row that is there twice the last one counts."""
        self.priorities[rows] = priorities
        self.stamps[rows] = np.arange(self.stamp, self.stamp + rows.size)
        self.stamp += rows.size

    def free(self, rows: np.ndarray) -> None:
        """Removes the items of rows, each of which is there once."""
        self.keys[rows] = NO_KEY
        self.stamps[rows] = -1
        self._free[self._num_free : self._num_free + rows.size] = rows
        self._num_free += rows.size
        self.size -= rows.size

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows `[M]` of those keys that there are, and which are `[N]`."""
        rows = (keys & _ROW_MASK).astype(np.int64)
        if self.capacity == 0:
            return rows[:0], np.zeros(rows.shape, bool)
        # "clip": a row beyond the columns is not found because the keys differ.
        found = self.keys.take(rows, mode="clip") == keys
        found &= keys != NO_KEY
        return (rows if found.all() else rows[found]), found

    def holds(self, keys: np.ndarray) -> np.ndarray:
        """Returns which keys, all given out here, are of items still here."""
        return self.keys.take(row_of(keys)) == keys

    def living(self) -> np.ndarray:
        """Returns the rows of all items, in rising order."""
        return np.flatnonzero(self.keys[: self.used] != NO_KEY)

    def by_age(self) -> np.ndarray:
        """Returns the rows of all items, the first inserted first.

        Items are put in order by their keys, and so correctly if the oldest is not
        2**32 inserts old.
        """
        rows = self.living()
        numbers = (self.keys[rows] >> _ROW_BITS).astype(np.int64)
        return rows[np.argsort((numbers - self.insert_number) % 2**32)]

    @property
    def free_rows(self) -> np.ndarray:
        """The rows that have been freed, the last one last."""
        return self._free[: self._num_free]

    @free_rows.setter
    def free_rows(self, rows: np.ndarray) -> None:
        self._free[: rows.size] = rows
        self._num_free = rows.size


def row_of(keys: np.ndarray) -> np.ndarray:
    """Returns the rows that keys name."""
    return (keys & _ROW_MASK).astype(np.int64)
