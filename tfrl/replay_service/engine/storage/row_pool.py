"""Allocates the rows of a growing array, and gives memory of free rows back."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tfrl.replay_service.engine import arrays as arrays_lib
from tfrl.replay_service.engine.storage.arena import Arena

_CHUNK = 1 << 20  # Bytes of a chunk, unless a row is larger.
_COLUMN = 4 * mmap.PAGESIZE  # Bytes of each column in a chunk, if all are alike.
_LOOKED_AT = 16  # Chunks that are looked at together.


class RowPool:
    """Allocates row numbers, the most recently released first.

    Attributes:
      end: One more than the highest row ever allocated.
      in_use: The number of rows allocated now.
    """

    __slots__ = ("_free", "_num_free", "end")

    def __init__(self) -> None:
        """Creates a pool without rows."""
        self.end = 0
        self._free = np.empty(0, np.int32)
        self._num_free = 0

    @property
    def in_use(self) -> int:
        """The number of rows allocated now."""
        return self.end - self._num_free

    @property
    def nbytes(self) -> int:
        """The memory used by the pool, in bytes."""
        return self._free.nbytes

    def end_after(self, n: int) -> int:
        """Returns the value of `end` after an allocation of `n` rows."""
        return self.end + max(0, n - self._num_free)

    def next(self, n: int) -> np.ndarray:
        """Returns the released rows that an allocation of `n` rows would take."""
        return self._free[max(self._num_free - n, 0) : self._num_free]

    def allocate(self, n: int) -> np.ndarray:
        """Allocates `n` rows; returns them as int32 `[n]`."""
        left = self._num_free - n
        if left >= 0:
            self._num_free = left
            return self._free[left : left + n].copy()
        end = self.end - left
        rows = np.empty(n, np.int32)
        rows[: self._num_free] = self._free[: self._num_free]
        rows[self._num_free :] = np.arange(self.end, end, dtype=np.int32)
        self._num_free, self.end = 0, end
        return rows

    def release(self, rows: np.ndarray) -> None:
        """Releases `rows` `[n]`, which are distinct and allocated."""
        num_free = self._num_free + len(rows)
        self._free = arrays_lib.doubled(self._free, num_free)
        self._free[self._num_free : num_free] = rows
        self._num_free = num_free


class SpareRows:
    """The chunks of an arena's rows whose memory has been given back.

    This does not change which row numbers are allocated. A chunk whose memory has been
    given back is absent; its memory must be taken again before one of its rows is used.
    """

    def __init__(self, arena: Arena, row_bytes: Sequence[int]):
        """Divides the rows of an arena into chunks, all of which have memory.

        Args:
          arena: The arena.
          row_bytes: The size of a row, for each column.
        """
        self._arena = arena
        sizes = [size for size in row_bytes if size]
        rows = max(_CHUNK, _COLUMN * len(sizes)) // max(sum(sizes), 1)
        # Chunks of a power of two rows often end where a page ends.
        self._rows_of_chunk = 1 << max(rows.bit_length() - 1, 0)
        self._is_absent = np.zeros(0, bool)
        self._num_absent = 0
        self._is_busy = False  # Memory of a chunk is being given back or taken.

    @property
    def num_absent(self) -> int:
        """The number of rows without memory."""
        return self._num_absent * self._rows_of_chunk

    def absent(self, rows: np.ndarray) -> np.ndarray:
        """Returns the chunks without memory to which `rows` `[n]` belong."""
        if not self._num_absent:
            return rows[:0]
        chunks = arrays_lib.distinct(rows // self._rows_of_chunk)
        chunks = chunks[chunks < len(self._is_absent)]
        return chunks[self._is_absent[chunks]]

    def taking(self, chunks: np.ndarray) -> Iterator[None]:
        """Takes memory for chunks again, in slices, one per step of the iterator.

        Raises:
          ResourceExhaustedError: If there is not enough memory.
        """
        for chunk in chunks.tolist():
            while self._is_busy:
                yield
            if self._is_absent[chunk]:
                yield from self._moving(chunk, self._arena.taking)
                self._is_absent[chunk] = False
                self._num_absent -= 1

    def giving_back(
        self, rows: int, end: int, is_free: Callable[[int, int], bool]
    ) -> Iterator[None]:
        """Gives back memory of free chunks, in slices, one per step of the iterator.

        Other calls may come between the slices.

        Args:
          rows: The number of rows after which to stop.
          end: The number of rows to look at.
          is_free: Returns whether no row of a range is in use.
        """
        size = self._rows_of_chunk
        self._is_absent = arrays_lib.doubled(self._is_absent, end // size)
        for chunk in reversed(range(end // size)):
            while self._is_busy:
                yield
            if rows <= 0 or not self._arena.gives_back:
                return
            first = chunk * size
            if not self._is_absent[chunk] and is_free(first, first + size):
                self._is_absent[chunk] = True
                self._num_absent += 1
                rows -= size
                yield from self._moving(chunk, self._arena.giving_back)
                yield
            elif chunk % _LOOKED_AT == 0:
                yield

    def _moving(
        self, chunk: int, move: Callable[[int, int, bool, bool], Iterator[None]]
    ) -> Iterator[None]:
        """Calls `move` for a chunk, while no other chunk is changed."""
        size = self._rows_of_chunk
        before = chunk > 0 and bool(self._is_absent[chunk - 1])
        after = bool(self._is_absent[chunk + 1 : chunk + 2].any())
        self._is_busy = True
        try:
            yield from move(chunk * size, (chunk + 1) * size, before, after)
        finally:
            self._is_busy = False
