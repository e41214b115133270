"""Which rows of a growing array are free."""

from __future__ import annotations

import numpy as np


class RowPool:
    """Gives out the numbers of rows, those given back last first.

    Attributes:
      end: One more than the highest number ever given out.
      in_use: How many are given out now.
    """

    __slots__ = ("_free", "_num_free", "end")

    def __init__(self) -> None:
        self.end = 0
        self._free = np.empty(0, np.int32)
        self._num_free = 0

    @property
    def in_use(self) -> int:
        return self.end - self._num_free

    @property
    def nbytes(self) -> int:
        return self._free.nbytes

    def end_after(self, n: int) -> int:
        """Returns what `end` will be when `n` more rows are given out."""
        return self.end + max(0, n - self._num_free)

    def allocate(self, n: int) -> np.ndarray:
        """Returns the numbers of `n` rows, int32 `[n]`."""
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
        """Takes back `rows`, `[n]`, each given out and in it once."""
        num_free = self._num_free + len(rows)
        if num_free > len(self._free):
            longer = np.empty(max(num_free, 2 * len(self._free)), np.int32)
            longer[: self._num_free] = self._free[: self._num_free]
            self._free = longer
        self._free[self._num_free : num_free] = rows
        self._num_free = num_free
