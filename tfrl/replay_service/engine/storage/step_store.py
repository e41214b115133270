"""The steps that writers have sent: columns of rows, counted by who refers to them.

A step takes one row, a slot, in each column of its schema. Items that overlap refer to
the same slots; a slot is free again when the last reference to it goes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrl.replay_service.engine.storage import arena as arena_lib
from tfrl.replay_service.engine.storage import row_pool
from tfrl.specs import dtype_names

# Of the counts' own dtype and indexed by intp: then NumPy counts 100 slots in a
# microsecond, and in ten otherwise.
_ONE = np.int32(1)


class StepStore:
    """All steps of one schema.

    Args:
      schema_id: What messages call the schema.
      columns: For each column the name of its dtype and the shape of a row.
      shared: Whether other processes of this host are to read the steps.

    Raises:
      ValueError: If there is no dtype of a name.
    """

    def __init__(
        self,
        schema_id: int,
        columns: Sequence[tuple[str, Sequence[int]]],
        shared: bool,
    ):
        self.schema_id = schema_id
        self.columns = [
            (str(name), tuple(int(size) for size in shape)) for name, shape in columns
        ]
        self._dtypes = [dtype_names.dtype_from_name(name) for name, _ in self.columns]
        self.row_bytes = tuple(
            dtype.itemsize * math.prod(shape)
            for dtype, (_, shape) in zip(self._dtypes, self.columns, strict=True)
        )
        self._arena = arena_lib.make_arena(self.row_bytes, shared)
        self._pool = row_pool.RowPool()
        self._counts = np.zeros(0, np.int32)

    @property
    def fd(self) -> int | None:
        """A descriptor of the file that holds the steps; None if they are not in one.

        It is the store's: whoever sends it elsewhere does not close it.
        """
        return self._arena.fd

    @property
    def rows_in_use(self) -> int:
        return self._pool.in_use

    @property
    def nbytes(self) -> int:
        """The memory that the steps take up, with what is kept about them."""
        return self._arena.nbytes + self._counts.nbytes + self._pool.nbytes

    def allocate(self, n: int) -> np.ndarray:
        """Returns `n` slots, int32 `[n]`, to each of which the caller refers once.

        Raises:
          ResourceExhaustedError: If memory is lacking; the store is as before.
        """
        end = self._pool.end_after(n)
        self._arena.reserve(end)
        if end > len(self._counts):
            counts = np.zeros(max(end, 2 * len(self._counts)), np.int32)
            counts[: len(self._counts)] = self._counts
            self._counts = counts
        slots = self._pool.allocate(n)
        self._counts[slots] = 1
        return slots

    def write(self, slots: np.ndarray, arrays: Sequence[np.ndarray]) -> None:
        """Writes steps.

        Args:
          slots: int32 `[n]`.
          arrays: For each column `[n, *row shape]`, of the column's dtype.
        """
        rows = slots.astype(np.intp)
        for column, size, array in zip(
            self._arena.columns, self.row_bytes, arrays, strict=True
        ):
            if size:
                data = np.ascontiguousarray(array).reshape(-1).view(column.dtype)
                assert len(data) == len(rows), "Not as many steps as slots."
                column[rows] = data

    def read(self, column: int, slots: np.ndarray) -> np.ndarray:
        """Returns a copy of one column of some steps, `[*slots.shape, *row shape]`.

        Args:
          column: Its index.
          slots: Of any shape and integer dtype.
        """
        shape = slots.shape + self.columns[column][1]
        if not self.row_bytes[column]:
            return np.zeros(shape, self._dtypes[column])
        rows = slots.reshape(-1).astype(np.intp, copy=False)
        # "clip" copies without looking whether the indices are within bounds.
        data = self._arena.columns[column].take(rows, mode="clip")
        return data.view(self._dtypes[column]).reshape(shape)

    def read_bytes(self, column: int, slots: np.ndarray) -> np.ndarray:
        """Returns some rows of a column as bytes, uint8 `[n, row bytes]`."""
        size = self.row_bytes[column]
        if not size:
            return np.empty((len(slots), 0), np.uint8)
        data = self._arena.columns[column].take(slots.astype(np.intp), mode="clip")
        return data.view(np.uint8).reshape(-1, size)

    def write_bytes(self, column: int, slots: np.ndarray, data: np.ndarray) -> None:
        """Writes some rows of a column, as `read_bytes` returned them."""
        if self.row_bytes[column]:
            rows = self._arena.columns[column]
            flat = np.ascontiguousarray(data).reshape(-1)
            rows[slots.astype(np.intp)] = flat.view(rows.dtype)

    def retain(self, slots: np.ndarray) -> None:
        """Counts one more reference for each element of `slots`, of any shape."""
        rows = slots.reshape(-1).astype(np.intp)
        if not len(rows):
            return
        if self._counts.take(rows).min() < 1:
            raise AssertionError("A slot is retained that nothing refers to.")
        np.add.at(self._counts, rows, _ONE)

    def release(self, slots: np.ndarray) -> None:
        """Counts one reference less for each element of `slots`, of any shape."""
        rows = slots.reshape(-1).astype(np.intp)
        if not len(rows):
            return
        np.subtract.at(self._counts, rows, _ONE)
        left = self._counts.take(rows)
        least = left.min()
        if least > 0:
            return
        if least < 0:
            np.add.at(self._counts, rows, _ONE)
            raise AssertionError("A slot is released that nothing refers to.")
        self._pool.release(_unique(rows[left == 0]))

    def description(self) -> dict[str, Any]:
        """Returns what a reader must know of the file, for JSON."""
        return {
            "schema": self.schema_id,
            "size": self._arena.size,
            "rows": self._arena.capacity,
            "columns": [
                {"dtype": name, "shape": list(shape), "offset": offset}
                for (name, shape), offset in zip(
                    self.columns, self._arena.offsets, strict=True
                )
            ],
        }

    def close(self) -> None:
        """Closes the file that the steps are in."""
        self._arena.close()


def _unique(rows: np.ndarray) -> np.ndarray:
    # Sorted, so that steps which follow one another lie side by side when reused.
    rows.sort()
    if len(rows) < 2:
        return rows
    first = np.empty(len(rows), bool)
    first[0] = True
    np.not_equal(rows[1:], rows[:-1], out=first[1:])
    return rows[first]
