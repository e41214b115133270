"""Stores a writer's recent steps in blocks of rows.

Steps are numbered from 0, over all episodes. Rows stay unchanged until the server has
confirmed all items that refer to them. So views of the rows can be sent without a copy,
and sent again after a connection was lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
import tree

from tfrl.replay_service.transport import wire
from tfrl.replay_service.writing.column import Column
from tfrl.replay_service.writing.history import ColumnHistory
from tfrl.replay_service.writing.structure import ColumnPlan, Path, Structure
from tfrl.specs import dtype_names

_BLOCK_BYTES = 2 << 20
_MAX_ROWS, _MIN_ROWS = 256, 4
_NAMES = {"float16": "half", "float32": "float", "float64": "double"}


class Block:
    """The values of consecutive steps, with one array per column.

    Attributes:
      start: The number of the first step.
      rows: The number of rows.
      arrays: One array `[rows, *shape]` per column. Columns that were added after a
        later block was created have no array here.
      sent: bool `[rows]`, whether each row has been sent to the server.
    """

    __slots__ = ("arrays", "rows", "sent", "start")

    def __init__(self, rows: int, arrays: list[np.ndarray]):
        """Creates a block; see the attributes."""
        self.start = 0
        self.rows = rows
        self.arrays = arrays
        self.sent = np.zeros(rows, bool)

    @classmethod
    def allocate(cls, rows: int, columns: Iterable[Column]) -> Self:
        """Returns a block with `rows` rows for the columns of the schema."""
        return cls(rows, [np.zeros((rows, *c.shape), c.dtype) for c in columns])

    def is_alike(self, rows: int, columns: int) -> bool:
        """Returns whether the block has these numbers of rows and columns."""
        return self.rows == rows and len(self.arrays) == columns

    def begin(self, start: int) -> None:
        """Prepares a new or used block for the steps from `start` on."""
        self.start = start
        self.sent[:] = False


class StepBuffers:
    """Stores the steps of a writer, in columns.

    Attributes:
      start: The first step of the history.
      end: The number of steps so far, including an open one.
      keep: The number of recent steps that items can refer to, in columns for which
        `configure` has not set another number.
      most: The largest number of recent steps that items can refer to in any column.
      is_open: Whether the last step is open for more of its leaves.
      structure: The structure of the data, with the histories.
      step_bytes: The size of a step in bytes.
      schema: The columns that have received a value, in the order of first values.
    """

    def __init__(self, keep: int):
        """Creates buffers without steps.

        Args:
          keep: See the attribute.
        """
        self.start = 0
        self.end = 0
        self.keep = keep
        self.most = keep
        self.is_open = False
        self.structure = Structure(self._make_column, ColumnHistory)
        self.schema: list[Column] = []
        self._configured: dict[Path, int] = {}
        self._row = self._rows = (
            0  # In the last block, the next row and the number of rows.
        )
        self._blocks: list[Block] = []
        self.step_bytes = 0
        self._lock = threading.Lock()
        self._lowest_needed: Callable[[], int] = lambda: self.end

    def guard(self, lock: threading.Lock, lowest_needed: Callable[[], int]) -> None:
        """Sets the lock that protects the blocks.

        Args:
          lock: The lock, which callers of `take_unsent` and `forget_sent` hold.
          lowest_needed: Returns the first step that may still be sent. It is called
            with the lock held.
        """
        self._lock = lock
        self._lowest_needed = lowest_needed

    def append(self, data: Any, is_partial: bool) -> None:
        """Adds a step, or some of its leaves. Adds nothing if it raises an error.

        Args:
          data: The nest of the step's values.
          is_partial: Whether the step stays open for more of its leaves.

        Raises:
          ValueError: If the dtype or shape of a leaf has changed, a leaf is set twice
            in a step or does not consist of numbers, or the structure does not fit.
        """
        structure = self.structure
        leaves, plan = structure.take_apart(data)
        if self.is_open:
            self._check_unset(leaves, plan)
            row = self._row - 1
        else:
            if self._row == self._rows:
                self._add_block()
            row = self._row
        is_whole = plan.is_whole
        for column, value in zip(plan.columns, leaves, strict=True):
            kind = type(value)
            if kind in column.scalars or (
                kind is np.ndarray
                and value.dtype is column.dtype
                and value.shape == column.shape
            ):
                column.array[row] = value
            elif value is None:
                is_whole = False
            elif tree.is_nested(value):
                # The value was a leaf when the plan was made.
                structure.take_apart_uncached(data)
                self.append(data, is_partial)
                return
            else:
                self._store(column, row, value)
        if self.is_open:
            self._complete(plan, leaves)
        else:
            step = self.end
            self.end = step + 1
            self._row = row + 1
            if not is_whole:
                self._note_missing(plan, leaves, step)
        self.is_open = is_partial

    def extend(self, data: Any) -> None:
        """Adds many steps, and keeps their arrays. Adds nothing if it raises an error.

        Args:
          data: A nest of arrays `[N, *shape]`, with a leaf for every column.

        Raises:
          ValueError: If a step is open, the dtype or shape of a leaf has changed, a
            leaf is missing, the leaves differ in N, or the structure does not fit.
        """
        if self.is_open:
            raise ValueError(
                "extend: the last step is open; complete it with `append`."
            )
        leaves, plan = self.structure.take_apart(data)
        if not plan.is_whole:
            raise ValueError("extend: a leaf of earlier steps is missing; add it.")
        arrays = [_as_array(leaf) for leaf in leaves]
        if any(not a.ndim or len(a) != len(arrays[0]) for a in arrays):
            raise ValueError(
                "extend: expected arrays [N, ...] of the same N, got the shapes "
                f"{[array.shape for array in arrays]}."
            )
        if not len(arrays[0]):
            return
        by_column: list[Any] = [None] * len(arrays)
        for column, array in zip(plan.columns, arrays, strict=True):
            self._fit(column, array[0])
            by_column[column.index] = array
        with self._lock:
            self._take_unneeded()
            if self._blocks:
                self._blocks[-1].rows = self._row  # No later step is in this block.
            block = Block(len(arrays[0]), by_column)
            block.begin(self.end)
            self._blocks.append(block)
        self.end += block.rows
        self._row = self._rows = block.rows

    def clear(self) -> None:
        """Clears the history."""
        self.start = self.end
        for column in self.structure.columns:
            column.clear(self.end)

    def configure(self, path: Path, keep: int) -> None:
        """Sets the number of recent steps of one column that items can refer to."""
        self._configured[tuple(path)] = keep
        self.most = max(self.keep, *self._configured.values())
        column = self.structure.column_at(path)
        if column is not None:
            column.keep = keep

    @property
    def oldest(self) -> int:
        """The first step that items can still refer to, in any column."""
        return max(self.start, self.end - self.most)

    def schema_description(self) -> list[Any]:
        """Returns the schema in the form of messages."""
        return [[dtype_names.dtype_name(c.dtype), list(c.shape)] for c in self.schema]

    def forget_sent(self) -> None:
        """Marks all steps as not sent."""
        for block in self._blocks:
            block.sent[:] = False

    def take_unsent(
        self, mask: np.ndarray, start: int
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Returns the steps that the server does not have, and marks them as sent.

        Args:
          mask: `[n]`, whether each step from `start` on is needed.
          start: The number of the first step of the mask.

        Returns:
          The numbers of the steps, int64 `[S]`, and one array `[S, *shape]` per column
          of the schema, usually a view.
        """
        numbers: list[np.ndarray] = []
        parts: list[list[np.ndarray]] = [[] for _ in self.schema]
        for block in self._blocks_of(start, start + len(mask)):
            low = max(block.start, start)
            high = min(block.start + block.rows, start + len(mask))
            sent = block.sent[low - block.start : high - block.start]
            (rows,) = (mask[low - start : high - start] & ~sent).nonzero()
            if not len(rows):
                continue
            rows += low - block.start
            block.sent[rows] = True
            numbers.append(rows + block.start)
            which = _as_slice(rows)
            for i, column in enumerate(self.schema):
                if i < len(block.arrays):
                    parts[i].append(block.arrays[i][which])
                else:
                    parts[i].append(np.zeros((len(rows), *column.shape), column.dtype))
        if not numbers:
            empty = [np.zeros((0, *c.shape), c.dtype) for c in self.schema]
            return np.zeros(0, np.int64), empty
        return _joined(numbers), [_joined(arrays) for arrays in parts]

    def read(self, column: Column, steps: Sequence[int]) -> np.ndarray:
        """Returns a column's values at available steps, `[len(steps), *shape]`."""
        result = np.empty((len(steps), *column.shape), column.dtype)
        index = column.index or 0
        block = self._blocks[-1]
        for i, step in enumerate(steps):
            if not block.start <= step < block.start + block.rows:
                (block,) = self._blocks_of(step, step + 1)
            result[i] = block.arrays[index][step - block.start]
        return result

    def _make_column(self, path: Path) -> Column:
        return Column(path, self, self._configured.get(path, self.keep), self.end)

    def _blocks_of(self, start: int, end: int) -> list[Block]:
        found = []
        for block in reversed(self._blocks):
            if block.start < end:
                found.append(block)
            if block.start <= start:
                break
        return found[::-1]

    def _add_block(self) -> None:
        rows = (
            _MIN_ROWS  # The first block is small, since the size of steps is unknown.
        )
        if self.step_bytes:
            rows = min(max(_BLOCK_BYTES // self.step_bytes, _MIN_ROWS), _MAX_ROWS)
        with self._lock:
            block = self._take_unneeded()
            # Used memory is cheaper than new memory.
            if block is None or not block.is_alike(rows, len(self.schema)):
                block = Block.allocate(rows, self.schema)
            block.begin(self.end)
            self._blocks.append(block)
        self._row, self._rows = 0, block.rows
        for column, array in zip(self.schema, block.arrays, strict=True):
            column.array = array

    def _take_unneeded(self) -> Block | None:
        """Drops the blocks that are not needed; returns the last of them."""
        needed = self._lowest_needed()
        free = None
        while len(self._blocks) > 1 and self._blocks[1].start <= needed:
            free = self._blocks.pop(0)
        return free

    def _store(self, column: Column, row: int, value: Any) -> None:
        """Stores a column's first value, or a value that has to be converted.

        Raises:
          ValueError: If the value does not fit the column.
        """
        try:
            array = _as_array(value)
        except ValueError as error:
            raise ValueError(f"Column {column.path}: {error}") from None
        self._fit(column, array)
        column.array[row] = array

    def _fit(self, column: Column, array: np.ndarray) -> None:
        """Checks a column's value, whose first one determines the column's type.

        Raises:
          ValueError: If the value does not fit the column.
        """
        if column.dtype is None:
            self._add_to_schema(column, array)
        if array.dtype != column.dtype:
            raise ValueError(
                f"Tensor of wrong dtype provided for column {column.path}. Got "
                f"{_dtype_text(array.dtype)} but expected {_dtype_text(column.dtype)}."
            )
        if array.shape != column.shape:
            raise ValueError(
                "Tensor of incompatible shape provided for column "
                f"{column.path}. Got {_shape_text(array.shape)} which is incompatible "
                f"with {_shape_text(column.shape)}."
            )

    def _add_to_schema(self, column: Column, value: np.ndarray) -> None:
        if len(self.schema) >= wire.MAX_COLUMNS:
            raise ValueError(
                f"append: got more than {wire.MAX_COLUMNS} leaves. Stack leaves into "
                "fewer, larger arrays."
            )
        if value.ndim > wire.MAX_STEP_RANK:
            raise ValueError(
                f"append: got a leaf of rank {value.ndim} at {column.path}, expected "
                f"at most {wire.MAX_STEP_RANK}. Reshape it."
            )
        with self._lock:
            column.set_type(value, len(self.schema))
            if self._blocks:
                block = self._blocks[-1]
                column.array = np.zeros((block.rows, *value.shape), value.dtype)
                block.arrays.append(column.array)
            self.schema.append(column)
            self.step_bytes += value.nbytes

    def _check_unset(self, leaves: list[Any], plan: ColumnPlan) -> None:
        step = self.end - 1
        for column, value in zip(plan.columns, leaves, strict=True):
            is_unset = column.created > step or column.missing_steps[-1:] == [step]
            if value is not None and not is_unset:
                raise ValueError(
                    f"Field {column.path} has already been set in the active step by "
                    "previous (partial) append call and thus must be omitted or set to "
                    f"None but got: {value}"
                )

    def _complete(self, plan: ColumnPlan, leaves: list[Any]) -> None:
        step = self.end - 1
        for column, value in zip(plan.columns, leaves, strict=True):
            if value is None:
                continue
            if column.created > step:
                column.created = column.first_contiguous_step = step
            else:
                column.mark_present()
        block = self._blocks[-1]
        block.sent[step - block.start] = False

    def _note_missing(self, plan: ColumnPlan, leaves: list[Any], step: int) -> None:
        given = {
            id(column)
            for column, value in zip(plan.columns, leaves, strict=True)
            if value is not None
        }
        for column in self.structure.columns:
            if id(column) not in given:
                column.mark_missing(step)


def _as_array(value: Any) -> np.ndarray:
    """Returns a leaf as an array of numbers.

    Raises:
      ValueError: If the leaf does not consist of numbers.
    """
    to_numpy = getattr(value, "numpy", None)
    array = np.asarray(to_numpy() if callable(to_numpy) else value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    dtype_names.dtype_name(array.dtype)
    return array


def _as_slice(rows: np.ndarray) -> slice | np.ndarray:
    """Returns rows as a slice if they are consecutive, which avoids a copy."""
    if rows[-1] - rows[0] == len(rows) - 1:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _dtype_text(dtype: np.dtype) -> str:
    return _NAMES.get(dtype.name, dtype.name)


def _shape_text(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"
