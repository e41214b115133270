"""Selects items by lowest or highest priority, for a table's heap strategies.

The selector is not a heap. It only keeps the first items of the order, the front, in
sorted arrays, and refills them from all items when they run out. This costs a few
passes over all items every few thousand removals, but no memory per item, and little
time per insert, because few new items belong to the front.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tfrl.replay_service.engine import arrays as arrays_lib
from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import selectors as selectors_lib

_LEAST, _MOST = 256, 16384  # Bounds of the number of items in a new front.
_SAMPLES = 1 << 14  # Items whose quantile is the limit of the front.
_MARGIN = 64  # Items to add to this quantile.
_PART = 1 << 15  # Rows.


class HeapOrder(selectors_lib.OrderedSelector):
    """Orders items by priority. Of equal priorities, the one set first comes first.

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
        """Updates the order for new priorities in rows `[N]`, which may repeat."""
        self.insert(arrays_lib.distinct(rows))

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
        """Refills the front with the first `n` items or more."""
        columns = self._columns
        if columns.size > 2 * n:
            rows, self._limit = self._first_rows(n)
        else:
            rows, self._limit = columns.living(), np.inf
        values, stamps = self._sign * columns.priorities[rows], columns.stamps[rows]
        order = np.lexsort((stamps, values))
        self._set(values[order], stamps[order], rows[order])

    def _first_rows(self, n: int) -> tuple[np.ndarray, float]:
        """Returns the rows of the first items, at least `n` and usually a few more.

        The limits are quantiles of a part of the items. To compare all items to a limit
        takes a small part of the time of an exact selection.

        Returns:
          The rows in any order, and a limit: the rows hold all items with values below
          the limit, and the first of the items with a value equal to the limit.
        """
        columns = self._columns
        stamps = columns.stamps[: columns.used]
        values = columns.priorities[: columns.used]
        some = slice(None, None, max(1, columns.used // _SAMPLES))
        sample = np.sort(self._sign * values[some][stamps[some] >= 0])
        aim = n
        while (limit := _quantile(sample, aim / columns.size)) is not None:
            below, ties = _split(values, stamps, self._sign, limit)
            missing = n - below.size
            if missing <= 0:
                return below, limit
            if missing <= np.count_nonzero(ties):
                return np.concatenate([below, _oldest(stamps, ties, missing)]), limit
            aim *= 2
        return columns.living(), np.inf

    def _aim(self) -> int:
        """Returns the desired number of items at the front."""
        return min(max(self._columns.size // 64, _LEAST), _MOST)

    def _set(self, values: np.ndarray, stamps: np.ndarray, rows: np.ndarray) -> None:
        """Replaces the entries at the front."""
        self._values, self._stamps, self._rows = values, stamps, rows


def _split(
    values: np.ndarray, stamps: np.ndarray, sign: float, limit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the items below a limit, and the items at the limit.

    Args:
      values: `[R]`, the values of all rows, to be multiplied by `sign`.
      stamps: `[R]`, the stamps of all rows; -1 in rows without an item.
      sign: 1.0 or -1.0.
      limit: The limit.

    Returns:
      The rows of the items below the limit, and a mask `[R]` of the items at the limit.
    """
    below = []
    ties = np.empty(values.size, bool)
    for part in _parts(values.size):
        signed = sign * values[part]
        living = stamps[part] >= 0
        below.append(np.flatnonzero(living & (signed < limit)) + part.start)
        np.logical_and(living, signed == limit, out=ties[part])
    return np.concatenate(below), ties


def _oldest(stamps: np.ndarray, mask: np.ndarray, n: int) -> np.ndarray:
    """Returns the rows of the `n` lowest stamps in a mask, and maybe further rows."""
    count = int(np.count_nonzero(mask))
    if count > 4 * n:
        some = slice(None, None, max(1, stamps.size // _SAMPLES))
        limit = _quantile(np.sort(stamps[some][mask[some]]), n / count)
        if limit is not None:
            found = [
                np.flatnonzero(mask[part] & (stamps[part] <= limit)) + part.start
                for part in _parts(stamps.size)
            ]
            if sum(rows.size for rows in found) >= n:
                return np.concatenate(found)
    rows = np.flatnonzero(mask)
    return rows[np.argpartition(stamps[rows], n - 1)[:n]]


def _parts(rows: int) -> Iterator[slice]:
    """Yields parts of arrays that stay in the processor's cache."""
    for start in range(0, rows, _PART):
        yield slice(start, start + _PART)


def _quantile(ordered: np.ndarray, share: float) -> Any:
    """Returns a quantile of a sample above `share`; None if it is out of range."""
    place = int(1.5 * share * ordered.size) + _MARGIN
    return ordered[place] if place < ordered.size else None
