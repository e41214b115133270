"""Stores the items of a table in arrays, one array per property.

Each item occupies a row. Its key holds the number of its insert (modulo 2**32) in the
upper half and its row in the lower half, so no dictionary is needed to find it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

NO_KEY = np.uint64(2**64 - 1)  # The key of a row without an item.
_ROW_BITS = np.uint64(32)
_ROW_MASK = np.uint64(2**32 - 1)
_FIRST_CAPACITY = 256


class Columns:
    """The items of a table, by row.

    Attributes:
      size: The number of items.
      capacity: The number of rows.
      keys: `[capacity]` uint64, `NO_KEY` in rows without an item.
      priorities: `[capacity]` float64.
      times_sampled: `[capacity]` int32.
      payloads: `[capacity]` int64, each of which holds two int32.
      episodes: `[capacity]` int64, the number of the item's episode.
      stamps: `[capacity]` int64, the number of the item's last insert or update,
        counted over all items; -1 in rows without an item.
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
        """Allocates empty columns."""
        self.capacity = capacity
        self.keys = np.full(capacity, NO_KEY, np.uint64)
        self.priorities = np.zeros(capacity)
        self.times_sampled = np.zeros(capacity, np.int32)
        self.payloads = np.zeros(capacity, np.int64)
        self.episodes = np.zeros(capacity, np.int64)
        self.stamps = np.full(capacity, -1, np.int64)
        self._free = np.zeros(capacity, np.int32)

    def clear(self) -> None:
        """Removes all items. Their keys are not used again."""
        self.size = 0
        self.used = 0  # Rows from this number on have never held an item.
        self._num_free = 0
        self.keys[:] = NO_KEY
        self.stamps[:] = -1

    def when_grown(self, grow: Callable[[int], None]) -> None:
        """Calls `grow` with the capacity, now and whenever the capacity changes."""
        self._on_grow.append(grow)
        grow(self.capacity)

    def reserve(self, capacity: int) -> None:
        """Grows the columns to at least `capacity` rows."""
        if capacity <= self.capacity:
            return
        # Doubles the capacity, but not far beyond the needs of a full table.
        doubled = min(max(2 * self.capacity, _FIRST_CAPACITY), self._max_size + 1024)
        old = self._arrays()
        self._allocate(max(capacity, doubled))
        for before, after in zip(old, self._arrays(), strict=True):
            after[: before.size] = before
        for grow in self._on_grow:
            grow(self.capacity)

    def _arrays(self) -> list[np.ndarray]:
        """Returns all arrays that have one element per row."""
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
        """Returns `[n]` rows without items, most recently freed rows first."""
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
        """Writes new items with new keys into rows; all arrays are `[N]`."""
        numbers = np.arange(
            self.insert_number, self.insert_number + rows.size, dtype=np.uint64
        )
        self.insert_number += rows.size
        # The shift drops the bits beyond 2**32.
        self.keys[rows] = (numbers << _ROW_BITS) | rows.astype(np.uint64)
        self.times_sampled[rows] = 0
        self.payloads[rows] = payloads
        self.episodes[rows] = episodes
        self.set_priorities(rows, priorities)

    def set_priorities(self, rows: np.ndarray, priorities: np.ndarray) -> None:
        """Sets priorities. If a row occurs twice, its last priority is used."""
        self.priorities[rows] = priorities
        self.stamps[rows] = np.arange(self.stamp, self.stamp + rows.size)
        self.stamp += rows.size

    def free(self, rows: np.ndarray) -> None:
        """Removes the items in `rows`, which must be distinct."""
        self.keys[rows] = NO_KEY
        self.stamps[rows] = -1
        self._free[self._num_free : self._num_free + rows.size] = rows
        self._num_free += rows.size
        self.size -= rows.size

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows `[M]` of existing keys, and a mask `[N]` of these keys."""
        rows = (keys & _ROW_MASK).astype(np.int64)
        if self.capacity == 0:
            return rows[:0], np.zeros(rows.shape, bool)
        # With "clip", a row beyond the columns is not found because the keys differ.
        found = self.keys.take(rows, mode="clip") == keys
        found &= keys != NO_KEY
        return (rows if found.all() else rows[found]), found

    def holds(self, keys: np.ndarray) -> np.ndarray:
        """Returns a mask `[N]` of the keys whose items still exist.

        Args:
          keys: `[N]` uint64, keys of items that this object holds or has held.
        """
        return self.keys.take(row_of(keys)) == keys

    def living(self) -> np.ndarray:
        """Returns the rows of all items, in ascending order."""
        return np.flatnonzero(self.keys[: self.used] != NO_KEY)

    def by_age(self) -> np.ndarray:
        """Returns the rows of all items in the order of their inserts.

        The order comes from the keys, so it is correct unless the oldest item is 2**32
        inserts old.
        """
        rows = self.living()
        numbers = (self.keys[rows] >> _ROW_BITS).astype(np.int64)
        return rows[np.argsort((numbers - self.insert_number) % 2**32)]

    @property
    def free_rows(self) -> np.ndarray:
        """The rows that have been freed, in the order in which they were freed."""
        return self._free[: self._num_free]

    @free_rows.setter
    def free_rows(self, rows: np.ndarray) -> None:
        self._free[: rows.size] = rows
        self._num_free = rows.size


def row_of(keys: np.ndarray) -> np.ndarray:
    """Returns the row of each key."""
    return (keys & _ROW_MASK).astype(np.int64)
