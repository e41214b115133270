"""Stores the steps that writers have sent, in columns of rows with reference counts.

A step occupies one row, its slot, in each column of its schema. Overlapping items refer
to the same slots. A slot is free again when its last reference is released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrl.replay_service.engine.storage import arena as arena_lib
from tfrl.replay_service.engine.storage import memory, row_pool
from tfrl.specs import dtype_names

# With the dtype of the counts, and indices of intp, NumPy counts 100 slots in a
# microsecond; otherwise it takes ten.
_ONE = np.int32(1)
_UNCHECKED_ROWS = 1 << 20


class StepStore:
    """All steps of one schema."""

    def __init__(
        self,
        schema_id: int,
        columns: Sequence[tuple[str, Sequence[int]]],
        shared: bool,
    ):
        """Creates a store without steps.

        Args:
          schema_id: The schema's number in messages.
          columns: The name of the dtype and the shape of a row, for each column.
          shared: Whether other processes of this host should be able to read the steps.

        Raises:
          ValueError: If the name of a dtype is unknown.
        """
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
        """A descriptor of the file that holds the steps; None without a file.

        The store owns the descriptor: callers must not close it.
        """
        return self._arena.fd

    @property
    def rows_in_use(self) -> int:
        """The number of slots that are referenced."""
        return self._pool.in_use

    @property
    def nbytes(self) -> int:
        """The memory used by the steps and their reference counts, in bytes."""
        return self._arena.nbytes + self._counts.nbytes + self._pool.nbytes

    def allocate(self, n: int) -> np.ndarray:
        """Allocates `n` slots with one reference each; returns them as int32 `[n]`.

        Raises:
          ResourceExhaustedError: If there is not enough memory. The store is unchanged.
        """
        end = self._pool.end_after(n)
        self._arena.reserve(end)
        if end > len(self._counts):
            rows = max(end, 2 * len(self._counts))
            if rows > _UNCHECKED_ROWS:  # Steps without bytes use only this memory.
                memory.check(rows * _ONE.itemsize)
            counts = np.zeros(rows, np.int32)
            counts[: len(self._counts)] = self._counts
            self._counts = counts
        slots = self._pool.allocate(n)
        self._counts[slots] = 1
        return slots

    def write(self, slots: np.ndarray, arrays: Sequence[np.ndarray]) -> None:
        """Writes steps.

        Args:
          slots: The slots to write to, int32 `[n]`.
          arrays: One array `[n, *row shape]` of the column's dtype per column.
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
          column: The index of the column.
          slots: The slots to read, of any shape and integer dtype.
        """
        shape = slots.shape + self.columns[column][1]
        if not self.row_bytes[column]:
            return np.zeros(shape, self._dtypes[column])
        rows = slots.reshape(-1).astype(np.intp, copy=False)
        # "clip" skips the check of bounds.
        data = self._arena.columns[column].take(rows, mode="clip")
        return data.view(self._dtypes[column]).reshape(shape)

    def read_bytes(self, column: int, slots: np.ndarray) -> np.ndarray:
        """Returns rows of a column as bytes, uint8 `[n, row bytes]`."""
        size = self.row_bytes[column]
        if not size:
            return np.empty((len(slots), 0), np.uint8)
        data = self._arena.columns[column].take(slots.astype(np.intp), mode="clip")
        return data.view(np.uint8).reshape(-1, size)

    def write_bytes(self, column: int, slots: np.ndarray, data: np.ndarray) -> None:
        """Writes rows of a column, given as bytes like the result of `read_bytes`."""
        if self.row_bytes[column]:
            rows = self._arena.columns[column]
            flat = np.ascontiguousarray(data).reshape(-1)
            rows[slots.astype(np.intp)] = flat.view(rows.dtype)

    def retain(self, slots: np.ndarray) -> None:
        """Adds one reference per element of `slots`, of any shape."""
        rows = slots.reshape(-1).astype(np.intp)
        if not len(rows):
            return
        if self._counts.take(rows).min() < 1:
            raise AssertionError("Retained a slot without references.")
        np.add.at(self._counts, rows, _ONE)

    def release(self, slots: np.ndarray) -> None:
        """Releases one reference per element of `slots`, of any shape."""
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
            raise AssertionError("Released a slot without references.")
        self._pool.release(_unique(rows[left == 0]))

    def description(self) -> dict[str, Any]:
        """Returns the description of the file that readers need, as a JSON object."""
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
        """Closes the file that holds the steps."""
        self._arena.close()


def _unique(rows: np.ndarray) -> np.ndarray:
    # Sorted, so that consecutive steps will be adjacent when the slots are reused.
    rows.sort()
    if len(rows) < 2:
        return rows
    first = np.empty(len(rows), bool)
    first[0] = True
    np.not_equal(rows[1:], rows[:-1], out=first[1:])
    return rows[first]
