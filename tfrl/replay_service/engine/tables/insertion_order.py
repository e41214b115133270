"""Selectors by order of insertion, for a table's first-in and last-in strategies."""

from __future__ import annotations

import abc
import itertools

import numpy as np

from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import selectors as selectors_lib

_BLOCK = 1024  # Keys of items.


class InsertionOrder(selectors_lib.OrderedSelector):
    """Base class of the selectors by order of insertion.

    The keys of items are kept in blocks, in order of insertion. The keys of deleted
    items are void. Void keys are dropped where the selector takes its items: at one end
    of the order. When most keys are void, each deletion also drops the void keys of a
    few other blocks.
    """

    def __init__(self, columns: columns_lib.Columns) -> None:
        """Creates a selector for columns without items."""
        super().__init__(columns)
        self.clear()

    def clear(self) -> None:
        """Forgets all items."""
        self._blocks: list[np.ndarray] = []  # Arrays that are never changed.
        self._last = np.empty(_BLOCK, np.uint64)  # The last block.
        self._begin = self._end = 0  # The part of the last block that is in use.
        self._size = 0  # The number of all keys, including keys of items that are gone.
        self._next_dense = 0  # The next block from which to drop void keys.

    def insert(self, rows: np.ndarray) -> None:
        """Adds the new items in rows `[N]`."""
        keys = self._columns.keys[rows]
        self._size += keys.size
        end = self._end + keys.size
        if end <= _BLOCK:
            self._last[self._end : end] = keys
            self._end = end
            return
        while keys.size:
            if self._end == _BLOCK:
                self._end_block()
            part = keys[: _BLOCK - self._end]
            self._last[self._end : self._end + part.size] = part
            self._end += part.size
            keys = keys[part.size :]

    def replace(self, rows: np.ndarray) -> None:
        """Updates the index after new items replaced the items in rows `[N]`."""
        self.insert(rows)
        self.delete(rows)

    def delete(self, rows: np.ndarray) -> None:
        """Updates the index after the items in rows `[N]` were deleted."""
        ahead = self._ahead(rows.size)
        if not self._columns.holds(ahead).any():
            self._drop(ahead.size)
            self._size -= ahead.size
        if self._size > 2 * self._columns.size + _BLOCK:
            # Void keys are dropped faster than they arise.
            self._drop_void(4 + 4 * rows.size // _BLOCK)

    def first(self, n: int) -> np.ndarray:
        """Returns the rows of the first `min(n, size)` items, in order."""
        n = min(n, self._columns.size)
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

    def order(self) -> list[np.ndarray]:
        """Returns arrays of keys, the oldest first; some items are gone.

        The arrays are never changed.
        """
        self._end_block()
        return list(self._blocks)

    @abc.abstractmethod
    def _ahead(self, width: int) -> np.ndarray:
        """Returns the next `width` keys in order; some items are gone."""

    @abc.abstractmethod
    def _drop(self, n: int) -> None:
        """Drops the next `n` keys."""

    def _end_block(self) -> None:
        """Starts a new last block."""
        if self._begin < self._end:
            self._blocks.append(self._last[self._begin : self._end])
        self._last = np.empty(_BLOCK, np.uint64)
        self._begin = self._end = 0

    def _drop_void(self, count: int) -> None:
        """Drops the void keys of up to `count` blocks, and joins small blocks."""
        self._end_block()
        for _ in range(min(count, len(self._blocks))):
            i = self._next_dense % len(self._blocks)
            self._next_dense = i + 1
            block = self._blocks[i]
            kept = block[self._columns.holds(block)]
            self._size -= block.size - kept.size
            self._blocks[i] = kept
            if i and kept.size + self._blocks[i - 1].size <= _BLOCK:
                self._blocks[i - 1 : i + 1] = [
                    np.concatenate([self._blocks[i - 1], kept])
                ]
                self._next_dense = i


class OldestFirst(InsertionOrder):
    """Orders items by insertion, the oldest first."""

    def _ahead(self, width: int) -> np.ndarray:
        """Returns the next `width` keys in order; some items are gone."""
        if self._blocks and self._blocks[0].size >= width:
            return self._blocks[0][:width]
        parts = []
        last = self._last[self._begin : self._end]
        for block in itertools.chain(self._blocks, [last]):
            parts.append(block[:width])
            width -= parts[-1].size
            if not width:
                break
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _drop(self, n: int) -> None:
        """Drops the next `n` keys."""
        blocks = self._blocks
        while n and blocks:
            first = blocks[0][n:]
            n -= blocks[0].size - first.size
            blocks[:1] = [first] if first.size else []
        self._begin += n


class NewestFirst(InsertionOrder):
    """Orders items by insertion, the newest first."""

    def _ahead(self, width: int) -> np.ndarray:
        """Returns the next `width` keys in order; some items are gone."""
        parts = []
        last = self._last[self._begin : self._end]
        for block in itertools.chain([last], reversed(self._blocks)):
            parts.append(block[max(block.size - width, 0) :][::-1])
            width -= parts[-1].size
            if not width:
                break
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _drop(self, n: int) -> None:
        """Drops the next `n` keys."""
        blocks = self._blocks
        of_last = min(n, self._end - self._begin)
        self._end -= of_last
        n -= of_last
        while n:
            last = blocks[-1][: max(blocks[-1].size - n, 0)]
            n -= blocks[-1].size - last.size
            blocks[-1:] = [last] if last.size else []
