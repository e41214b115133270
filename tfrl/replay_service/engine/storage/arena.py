"""Memory for columns of rows.

A column is an array of rows of raw bytes. All columns have the same number of rows. A
`MappedArena`, which other processes can map, is in its own module, because Windows
has no such memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from typing_extensions import override

from tfrl.replay_service import errors
from tfrl.replay_service.engine.storage import memory

MAX_ROWS = 2**31 - 1  # Rows are numbered by int32.
MOST_STEP = 4 << 20  # Rows or bytes by which an arena grows beyond the request.

_LEAST_HEAP = 4 << 10
_SMALL_HEAP = 64 << 10  # Bytes up to which a heap arena doubles its size.


class Arena(Protocol):
    """Columns of rows of raw bytes.

    Attributes:
      columns: One array of a void dtype per column. It has at least `rows` rows, or no
        rows if they have no bytes. Growing the arena may replace the arrays.
      rows: The number of rows that may be used.
      fd: A descriptor of the file, for readers; None without a file.
      offsets: The offset of each column in the file.
      capacity: The maximum number of rows.
      size: The size of the file, in bytes.
      gives_back: Whether memory of some rows can be given back to the system.
    """

    columns: list[np.ndarray]
    rows: int
    fd: int | None
    offsets: tuple[int, ...]
    capacity: int
    size: int
    gives_back: bool

    @property
    def nbytes(self) -> int:
        """The memory used, in bytes."""

    def reserve(self, rows: int) -> None:
        """Grows the arena to at least `rows` usable rows.

        Raises:
          ResourceExhaustedError: If there is not enough memory. The arena has as many
            usable rows as before.
        """

    def reserving(self, rows: int) -> Iterator[None]:
        """Does the same as `reserve` in slices, one per step of the iterator.

        Other calls may come between the slices.
        """

    def giving_back(
        self, start: int, stop: int, before: bool, after: bool
    ) -> Iterator[None]:
        """Gives back the memory of usable rows, in slices.

        Args:
          start: The first row.
          stop: The row after the last one.
          before: Whether the rows before `start` have no memory, either.
          after: Whether the rows from `stop` on have no memory, either.
        """

    def taking(
        self, start: int, stop: int, before: bool, after: bool
    ) -> Iterator[None]:
        """Allocates memory that `giving_back` has given back, in slices.

        The arguments are the same as for `giving_back`.

        Raises:
          ResourceExhaustedError: If there is not enough memory.
        """

    def clear(self) -> bool:
        """Gives back all memory, if possible, with all rows; returns whether it did."""

    def close(self) -> None:
        """Closes the file. The columns stay readable while they are referenced."""


class HeapArena(Arena):
    """An arena in this process's own memory, for systems without shared mappings."""

    fd: int | None = None
    offsets: tuple[int, ...] = ()
    capacity = MAX_ROWS
    size = 0
    gives_back = False

    def __init__(self, row_bytes: Sequence[int]):
        """Creates an empty arena.

        Args:
          row_bytes: The size of a row, for each column.
        """
        self.columns = [np.empty(0, f"V{max(size, 1)}") for size in row_bytes]
        self.rows = 0
        self._row_bytes = tuple(row_bytes)

    @property
    def nbytes(self) -> int:
        """The memory used, in bytes."""
        return sum(column.nbytes for column in self.columns)

    def reserve(self, rows: int) -> None:
        """Grows the arena to at least `rows` usable rows.

        Raises:
          ResourceExhaustedError: If there is not enough memory. The arena is unchanged.
        """
        if rows <= self.rows:
            return
        # There can be thousands of arenas with few rows.
        size = max(sum(self._row_bytes), 1)
        further = min(self.rows // 8, MOST_STEP)
        if self.rows * size < _SMALL_HEAP:
            further = max(self.rows, _LEAST_HEAP // size)
        rows = max(rows, self.rows + further)
        # The old columns are freed only afterwards.
        memory.check(rows * sum(self._row_bytes))
        try:
            columns = [
                self._longer(column, rows if size else 0)
                for column, size in zip(self.columns, self._row_bytes, strict=True)
            ]
        except MemoryError:
            raise errors.ResourceExhaustedError(
                f"There is not enough memory for {rows} steps of "
                f"{sum(self._row_bytes)} bytes. Give the tables a smaller max_size."
            ) from None
        self.columns, self.rows = columns, rows

    def reserving(self, rows: int) -> Iterator[None]:
        """Does the same as `reserve`, in one slice."""
        self.reserve(rows)
        return iter(())

    @override
    def giving_back(
        self, start: int, stop: int, before: bool, after: bool
    ) -> Iterator[None]:
        """Does nothing: the memory of some rows cannot be given back."""
        return iter(())

    @override
    def taking(
        self, start: int, stop: int, before: bool, after: bool
    ) -> Iterator[None]:
        """Does nothing: all usable rows have memory."""
        return iter(())

    def clear(self) -> bool:
        """Gives back all memory; then no row is usable. Returns True."""
        self.columns = [column[:0].copy() for column in self.columns]
        self.rows = 0
        return True

    def close(self) -> None:
        """Does nothing: there is no file."""

    def _longer(self, column: np.ndarray, rows: int) -> np.ndarray:
        longer = np.empty(rows, column.dtype)
        longer[: len(column)] = column
        return longer
