"""Stores the steps that writers have sent, in columns of rows with reference counts.

A step occupies one row, its slot, in each column of its schema. Overlapping items refer
to the same slots. A slot is free again when its last reference is released.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np

from tfrl.replay_service.engine import arrays as arrays_lib
from tfrl.replay_service.engine.storage import arena as arena_lib
from tfrl.replay_service.engine.storage import memory, row_pool
from tfrl.specs import dtype_names

_LEAST_SENT = 64  # The least number of steps for which there is room.
_MANY_SENT = 1 << 16  # More room than this is given back when there are no steps.
_SENT_SLICE = 1 << 15  # Steps that are released together.

# With the dtype of the counts, and indices of intp, NumPy counts 100 slots in a
# microsecond; otherwise it takes ten.
_ONE = np.int32(1)
_SLICE = 1 << 20  # Bytes that are read or written together.
_SLOTS = 1 << 15  # References that are released together.
_UNCHECKED_ROWS = 1 << 20
_LEAST_SPARE = 1 << 20  # Bytes of unused rows that are not worth giving back.
_MOST_SPARE = 4 << 30  # Bytes that are given back together.


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
        self._arena = make_arena(self.row_bytes, shared)
        self._pool = row_pool.RowPool()
        self._spare = row_pool.SpareRows(self._arena, self.row_bytes)
        self._counts = np.zeros(0, np.int32)
        self._pending = 0  # Slots of unfinished calls of `allocating`.
        self._most_used = 0  # Rows in use at one time since `spare` was called.
        self._gives_back = False  # Whether `giving_back` is at work.

    @property
    def fd(self) -> int | None:
        """A descriptor of the file that holds the steps; None without a file.

        The store owns the descriptor: callers must not close it.
        """
        return self._arena.fd

    @property
    def rows_in_use(self) -> int:
        """The number of slots that are referenced, or that are being allocated."""
        return self._pool.in_use + self._pending

    @property
    def nbytes(self) -> int:
        """The memory used by the steps and their reference counts, in bytes."""
        return self._arena.nbytes + self._counts.nbytes + self._pool.nbytes

    def allocate(self, n: int) -> np.ndarray:
        """Allocates `n` slots with one reference each; returns them as int32 `[n]`.

        Raises:
          ResourceExhaustedError: If there is not enough memory. The store is unchanged.
        """
        self._arena.reserve(self._pool.end_after(n))
        for _ in self._spare.taking(self._spare.absent(self._pool.next(n))):
            pass
        return self._allocate(n)

    def allocating(self, n: int) -> Generator[None, None, np.ndarray]:
        """Does the same as `allocate` in slices, one per step of the generator.

        Other calls may come between the slices.

        Raises:
          ResourceExhaustedError: If there is not enough memory. No slots are allocated.
        """
        self._pending += n
        try:
            while True:
                if (end := self._pool.end_after(n)) > self._arena.rows:
                    yield from self._arena.reserving(end)
                elif len(absent := self._spare.absent(self._pool.next(n))):
                    yield from self._spare.taking(absent)
                else:
                    break
        finally:
            self._pending -= n
        return self._allocate(n)

    def _allocate(self, n: int) -> np.ndarray:
        """Allocates `n` slots for which the arena has memory."""
        end = self._pool.end_after(n)
        if end > len(self._counts):
            rows = max(end, 2 * len(self._counts))
            if rows > _UNCHECKED_ROWS:  # Steps without bytes use only this memory.
                memory.check(rows * _ONE.itemsize)
            self._counts = arrays_lib.doubled(self._counts, rows)
        slots = self._pool.allocate(n)
        self._counts[slots] = 1
        self._most_used = max(self._most_used, self.rows_in_use)
        return slots

    def write(self, slots: np.ndarray, arrays: Sequence[np.ndarray]) -> None:
        """Writes steps.

        Args:
          slots: The slots to write to, int32 `[n]`.
          arrays: One array `[n, *row shape]` of the column's dtype per column.
        """
        for _ in self.writing(slots, arrays):
            pass

    def writing(
        self, slots: np.ndarray, arrays: Sequence[np.ndarray]
    ) -> Iterator[None]:
        """Does the same as `write` in slices, one per step of the iterator."""
        rows = slots.astype(np.intp)
        room = _SLICE
        for index, (size, array) in enumerate(zip(self.row_bytes, arrays, strict=True)):
            if not size:
                continue
            column = self._arena.columns[index]
            data = np.ascontiguousarray(array).reshape(-1).view(column.dtype)
            assert len(data) == len(rows), "Not as many steps as slots."
            if data.nbytes <= room:
                column[rows] = data
                room -= data.nbytes
                continue
            for part, of_row in _slices(len(data), size):
                yield
                # Growing the arena between slices may replace its arrays.
                column = self._arena.columns[index]
                if of_row is None:
                    column[rows[part]] = data[part]
                else:
                    row = rows[part.start]
                    to = column[row : row + 1].view(np.uint8)
                    to[of_row] = data[part].view(np.uint8)[of_row]
            room = 0

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

    def reading(
        self, column: int, slots: np.ndarray, allocate: Callable[[int], np.ndarray]
    ) -> Generator[None, None, np.ndarray]:
        """Does the same as `read` in slices, one per step of the generator.

        Other calls may come between the slices. The slots must be referenced meanwhile.

        Args:
          column: See `read`.
          slots: See `read`.
          allocate: Returns an array, uint8, of a number of bytes.
        """
        size = self.row_bytes[column]
        if slots.size * size <= _SLICE:
            return self.read(column, slots)
        rows = slots.reshape(-1).astype(np.intp, copy=False)
        # Unlike an empty array of a void dtype, this one is not filled with zeros.
        result = allocate(len(rows) * size).view(self._arena.columns[column].dtype)
        for part, of_row in _slices(len(rows), size):
            source = self._arena.columns[column]
            if of_row is None:
                source.take(rows[part], mode="clip", out=result[part])
            else:
                row = rows[part.start]
                to = result[part].view(np.uint8)
                to[of_row] = source[row : row + 1].view(np.uint8)[of_row]
            yield
        shape = slots.shape + self.columns[column][1]
        return result.view(self._dtypes[column]).reshape(shape)

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
        # Sorted, so that consecutive steps will be adjacent when the slots are reused.
        self._pool.release(arrays_lib.distinct(rows[left == 0]))

    def releasing(self, slots: np.ndarray) -> Iterator[None]:
        """Does the same as `release` in slices, one per step of the iterator.

        Other calls may come between the slices.
        """
        flat = slots.reshape(-1)
        for start in range(0, len(flat), _SLOTS):
            if start:
                yield
            self.release(flat[start : start + _SLOTS])

    def spare(self) -> int:
        """Returns the number of rows whose memory was not needed since the last call.

        A quarter more than the needed memory is kept. The result is 0 while memory is
        being given back.
        """
        needed, self._most_used = self._most_used, self.rows_in_use
        present = self._pool.end - self._spare.num_absent
        rows = present - max(needed, self.rows_in_use) * 5 // 4
        size = sum(self.row_bytes) + 2 * _ONE.itemsize  # Includes the bookkeeping.
        is_little = rows * size < _LEAST_SPARE
        return 0 if is_little or self._gives_back else min(rows, _MOST_SPARE // size)

    def giving_back(self, rows: int) -> Iterator[None]:
        """Gives back memory of about `rows` free rows to the system, in slices.

        Other calls may come between the slices; a further call of this method does
        nothing meanwhile. If the system cannot take back single rows, all rows are
        given back when none is in use.
        """
        if self._gives_back:
            return
        self._gives_back = True
        try:
            yield from self._spare.giving_back(rows, self._pool.end, self._is_free)
        finally:
            self._gives_back = False
        if not self.rows_in_use and self._arena.clear():
            self._pool = row_pool.RowPool()
            self._spare = row_pool.SpareRows(self._arena, self.row_bytes)
            self._counts = np.zeros(0, np.int32)

    def dropping(self) -> Iterator[None]:
        """Gives back the memory of a store without steps, in slices, and closes it.

        Clients may have mapped the file, which keeps the memory that is not given back.
        """
        yield from self.giving_back(self._pool.end)
        self.close()

    def _is_free(self, start: int, stop: int) -> bool:
        return not self._counts[start:stop].any()

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


def _slices(rows: int, size: int) -> Iterator[tuple[slice, slice | None]]:
    """Yields the slices in which a column is written.

    Args:
      rows: The number of rows.
      size: The size of a row in bytes.

    Yields:
      Pairs: a slice of rows, and None; or a slice with a single row, and a slice of the
        row's bytes.
    """
    if size <= _SLICE:
        step = _SLICE // size
        for start in range(0, rows, step):
            yield slice(start, min(start + step, rows)), None
        return
    for row in range(rows):
        for start in range(0, size, _SLICE):
            yield slice(row, row + 1), slice(start, min(start + _SLICE, size))


class SentSteps:
    """The slots of a session's steps, by step number.

    The collection holds a reference to each slot until `forgetting` or `close`.
    """

    def __init__(self, store: StepStore):
        """Creates an empty collection for steps in `store`."""
        self._store = store
        # The steps are at _start to _end, in the order of their numbers.
        self._numbers, self._slots = _sent_arrays(_LEAST_SENT)
        self._start = self._end = 0

    def __len__(self) -> int:
        """Returns the number of steps."""
        return self._end - self._start

    def add(self, numbers: np.ndarray, slots: np.ndarray) -> None:
        """Adds steps, which replace earlier steps of the same numbers.

        Args:
          numbers: int64 `[n]`, the numbers of the steps, ascending.
          slots: int32 `[n]`, the slot of each step. The collection takes over the
            caller's reference to each slot.
        """
        if len(self) and numbers[0] <= self._numbers[self._end - 1]:
            numbers, slots = self._merged(numbers, slots)
            self._start = self._end = 0
        end = self._end + len(numbers)
        if end > len(self._numbers):
            end = self._make_room(len(numbers))
        self._numbers[self._end : end] = numbers
        self._slots[self._end : end] = slots
        self._end = end

    def slots(self, refs: np.ndarray) -> np.ndarray:
        """Returns the slots of the steps numbered `refs`, in the same shape.

        Raises:
          ValueError: If one of the steps is not available.
        """
        numbers = self._numbers[self._start : self._end]
        indices = numbers.searchsorted(refs)
        found = numbers.take(indices, mode="clip") == refs if len(numbers) else refs < 0
        if not found.all():
            raise ValueError(
                f"An item refers to step {refs[~found][0]}, which is not available: "
                "it was never sent, or the writer has released it."
            )
        return self._slots[self._start : self._end][indices]

    def forgetting(self, keep: int) -> Iterator[None]:
        """Releases the steps numbered below `keep`, in slices.

        Other calls may come between the slices.
        """
        while True:
            numbers = self._numbers[self._start : self._end][:_SENT_SLICE]
            count = int(numbers.searchsorted(keep))
            if count:
                self._store.release(self._slots[self._start : self._start + count])
                self._start += count
            if not len(self) and len(self._numbers) > _MANY_SENT:
                self._numbers, self._slots = _sent_arrays(_LEAST_SENT)
                self._start = self._end = 0
            if count < _SENT_SLICE:
                return
            yield

    def close(self) -> Iterator[None]:
        """Empties the collection; returns an iterator that releases its steps.

        Each step of the iterator is a slice. Other calls may come between the slices.
        """
        slots = self._slots[self._start : self._end]
        self._numbers, self._slots = _sent_arrays(_LEAST_SENT)
        self._start = self._end = 0
        return self._store.releasing(slots)

    def _merged(
        self, numbers: np.ndarray, slots: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns all steps, including added steps; releases replaced steps."""
        old_numbers = self._numbers[self._start : self._end]
        old_slots = self._slots[self._start : self._end]
        replaced = np.isin(old_numbers, numbers, assume_unique=True)
        self._store.release(old_slots[replaced])
        numbers = np.concatenate([old_numbers[~replaced], numbers])
        slots = np.concatenate([old_slots[~replaced], slots])
        order = numbers.argsort()
        return numbers[order], slots[order]

    def _make_room(self, count: int) -> int:
        """Moves the steps to the start of arrays with room for `count` more.

        Returns:
          The index of the end after `count` more steps.
        """
        held = len(self)
        # Twice the room, so that many small additions take little time each.
        numbers, slots = _sent_arrays(max(2 * (held + count), _LEAST_SENT))
        numbers[:held] = self._numbers[self._start : self._end]
        slots[:held] = self._slots[self._start : self._end]
        self._numbers, self._slots = numbers, slots
        self._start, self._end = 0, held
        return held + count


def _sent_arrays(room: int) -> tuple[np.ndarray, np.ndarray]:
    return np.empty(room, np.int64), np.empty(room, np.int32)


def make_arena(row_bytes: Sequence[int], shared: bool) -> arena_lib.Arena:
    """Returns a `MappedArena` if `shared` and possible, else a `HeapArena`.

    Args:
      row_bytes: The size of a row, for each column.
      shared: Whether other processes of this host should be able to read the arena.
    """
    if shared and sys.platform != "win32":
        from tfrl.replay_service.engine.storage import mapped_arena

        # A sandbox may refuse files or mappings; rows then travel over the socket.
        with contextlib.suppress(OSError, ValueError):
            return mapped_arena.MappedArena(row_bytes, memory.total())
    return arena_lib.HeapArena(row_bytes)
