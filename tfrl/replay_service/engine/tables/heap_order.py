"""Selects items by lowest or highest priority, for a table's heap strategies.

The selector is not a heap. It only keeps the first items of the order, the front, in
sorted arrays, and refills them from all items when they run out. This costs a partition
of all items every few thousand removals, but no memory per item, and little time per
insert, because few new items belong to the front.
"""

from __future__ import annotations

import numpy as np

from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import selectors as selectors_lib

_LEAST, _MOST = 256, 16384  # Bounds of the number of items at the front after a refill.


class HeapOrder(selectors_lib.OrderedSelector):
    """Orders items by priority; of equal priorities, the one set first comes first.

    An item is at the front if `sign` times its priority is below a limit. An updated
    item gets a new entry with a later stamp. The stamp places it behind items of equal
    priority, and marks its old entry as void.
    """

    def __init__(self, columns: columns_lib.Columns, sign: float) -> None:
        """Creates a selector for columns without items.

        Args:
          columns: The items.
          sign: 1.0 for the lowest priority first, -1.0 for the highest.
        """
        super().__init__(columns)
        self._sign = sign
        self.clear()

    def clear(self) -> None:
        """Forgets all items."""
        self._set(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
        self._limit = np.inf  # All items are at the front.

    def insert(self, rows: np.ndarray) -> None:
        """Adds the new items in rows `[N]`."""
        values = self._sign * self._columns.priorities[rows]
        near = values < self._limit
        if not near.any():
            return
        rows, values = rows[near], values[near]
        stamps = self._columns.stamps[rows]
        # Stamps ascend within a batch, except for a row that occurs twice: then its
        # two entries are equal, and the second is dropped as void.
        order = np.lexsort((stamps, values))
        places = self._values.searchsorted(values[order], side="right")
        self._set(
            np.insert(self._values, places, values[order]),
            np.insert(self._stamps, places, stamps[order]),
            np.insert(self._rows, places, rows[order]),
        )
        if self._rows.size > 2 * self._aim():
            self._shorten()

    def update(self, rows: np.ndarray) -> None:
        """Takes note of new priorities in rows `[N]`, which may repeat."""
        self.insert(np.unique(rows))

    def first(self, n: int) -> np.ndarray:
        """Returns the rows of the first `min(n, size)` items, in order."""
        n = min(n, self._columns.size)
        if n == 0:
            return self._rows[:0]
        width = n
        while width < 2 * self._rows.size:
            valid = self._columns.stamps[self._rows[:width]] == self._stamps[:width]
            if np.count_nonzero(valid) >= n:
                found = self._rows[:width][valid][:n]
                self._drop_void(valid)
                return found
            width *= 2
        self._fill(max(n, self._aim()))
        return self._rows[:n]

    def _drop_void(self, valid: np.ndarray) -> None:
        """Drops the void entries before the first valid one."""
        void = int(valid.argmax())
        if void:
            self._set(self._values[void:], self._stamps[void:], self._rows[void:])

    def _shorten(self) -> None:
        """Drops void entries, and entries too far from the front."""
        valid = np.flatnonzero(self._columns.stamps[self._rows] == self._stamps)
        if valid.size > self._aim():
            valid = valid[: self._aim()]
            self._limit = self._values[valid[-1]]
        self._set(self._values[valid], self._stamps[valid], self._rows[valid])

    def _fill(self, n: int) -> None:
        """Refills the front with the first `n` items, or all if there are few more."""
        rows = self._columns.living()
        values = self._sign * self._columns.priorities[rows]
        stamps = self._columns.stamps[rows]
        self._limit = np.inf
        if rows.size > 2 * n:
            self._limit = np.partition(values, n - 1)[n - 1]
            ties = np.flatnonzero(values == self._limit)
            before = np.flatnonzero(values < self._limit)
            missing = n - before.size
            if ties.size > missing:
                ties = ties[np.argpartition(stamps[ties], missing - 1)[:missing]]
            chosen = np.concatenate([before, ties])
            rows, values, stamps = rows[chosen], values[chosen], stamps[chosen]
        order = np.lexsort((stamps, values))
        self._set(values[order], stamps[order], rows[order])

    def _aim(self) -> int:
        """Returns the desired number of items at the front."""
        return min(max(self._columns.size // 64, _LEAST), _MOST)

    def _set(self, values: np.ndarray, stamps: np.ndarray, rows: np.ndarray) -> None:
        """Replaces the entries at the front."""
        self._values, self._stamps, self._rows = values, stamps, rows
