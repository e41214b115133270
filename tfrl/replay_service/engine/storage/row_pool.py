"""Keeps track of the free rows of a growing array."""

from __future__ import annotations

import numpy as np

from tfrl.replay_service.engine import arrays as arrays_lib


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
