"""The items of lowest or highest priority first, for a table's heap selectors.

Not a heap: only the items at the front are kept in order, as arrays, which are filled
again from all items when they have been used up. That costs a partition of all items
once every few thousand removals, no memory an item, and little for an insert, which
rarely comes to the front.
"""

from __future__ import annotations

import numpy as np

from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import selectors as selectors_lib

_LEAST, _MOST = 256, 16384  # Items at the front after it has been filled.


class HeapOrder(selectors_lib.OrderedSelector):
    """Items by priority; of equal ones, the one set first comes first.

    An item is at the front if its priority is less (`sign` times) than a limit. An item
    that is set again enters anew with a later stamp, by which its old entry is known to
    be void, and which puts it behind its equals.
    """

    def __init__(self, columns: columns_lib.Columns, sign: float) -> None:
        """Creates a selector of columns that are still empty.

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
        """Adds rows `[N]` whose items have been written."""
        values = self._sign * self._columns.priorities[rows]
        near = values < self._limit
        if not near.any():
            return
        rows, values = rows[near], values[near]
        stamps = self._columns.stamps[rows]
        # A batch's stamps rise with its rows, but where a row is there twice, whose
        # entries are the same then, and the second is dropped as void.
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
        """Notes that rows `[N]`, some maybe twice, have new priorities."""
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
        """Drops the void entries before the first that is valid."""
        void = int(valid.argmax())
        if void:
            self._set(self._values[void:], self._stamps[void:], self._rows[void:])

    def _shorten(self) -> None:
        """Drops void entries, and what is too far from the front."""
        valid = np.flatnonzero(self._columns.stamps[self._rows] == self._stamps)
        if valid.size > self._aim():
            valid = valid[: self._aim()]
            self._limit = self._values[valid[-1]]
        self._set(self._values[valid], self._stamps[valid], self._rows[valid])

    def _fill(self, n: int) -> None:
        """Puts the first `n` of all items at the front, or all if they are few more."""
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
        """Returns how many items are to be at the front."""
        return min(max(self._columns.size // 64, _LEAST), _MOST)

    def _set(self, values: np.ndarray, stamps: np.ndarray, rows: np.ndarray) -> None:
        """Sets the entries."""
        self._values, self._stamps, self._rows = values, stamps, rows
