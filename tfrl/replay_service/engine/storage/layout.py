"""One layout, which defines the columns of items and holds the slots of each item."""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import numpy as np

from tfrl.replay_service.engine import arrays as arrays_lib
from tfrl.replay_service.engine.storage import row_pool, step_store
from tfrl.replay_service.transport import wire

MAX_WIDTH = 1 << 24  # Maximum number of steps of one item.
SLICE = 1 << 15  # References to steps that are added or released together.
_LAYOUT_BYTES, _COLUMN_BYTES = 1024, 64  # The approximate size of a layout.


class ColumnSource(NamedTuple):
    """The source of one column of an item.

    Attributes:
      column: The index of a column of the steps.
      range: The index of one of the item's ranges of steps.
      squeezed: Whether the column has no time dimension; the range is then one step.
    """

    column: int
    range: int
    squeezed: bool


class Layout:
    """One layout, with the slots of its items.

    Attributes:
      id: A number that no other layout of the server ever has.
      number: The number of the layout in payloads; -1 if there are no items.
      key: A key that is equal for layouts of the same store, columns and lengths.
      store: The store of the steps.
      columns: The source of each column of an item.
      lengths: The number of steps of each range.
      width: The number of steps of an item.
      item_bytes: The size of the data of an item, in bytes.
    """

    # Episodes of different lengths create thousands of these objects.
    __slots__ = (
        "_matrix",
        "_offsets",
        "_pool",
        "columns",
        "id",
        "item_bytes",
        "key",
        "lengths",
        "number",
        "store",
        "width",
    )

    def __init__(
        self,
        id: int,
        store: step_store.StepStore,
        columns: tuple[ColumnSource, ...],
        lengths: tuple[int, ...],
    ):
        """Creates a layout without items; see the attributes."""
        self.id = id
        self.number = -1
        self.key = (store.schema_id, columns, lengths)
        self.store = store
        self.columns = columns
        self.lengths = lengths
        self._offsets = tuple(itertools.accumulate(lengths, initial=0))
        self.width = self._offsets[-1]
        self.item_bytes = sum(
            lengths[range_] * store.row_bytes[column] for column, range_, _ in columns
        )
        self._pool: row_pool.RowPool | None = None
        self._matrix: np.ndarray | None = None  # One element of a void dtype per item.

    @property
    def nbytes(self) -> int:
        """The memory used by the slots of the items, in bytes."""
        if self._matrix is None or self._pool is None:
            return 0
        return self._matrix.nbytes + self._pool.nbytes

    @property
    def is_empty(self) -> bool:
        """Whether there are no items."""
        return self._pool is None

    @property
    def items_per_slice(self) -> int:
        """The number of items that may be added, removed or drawn together.

        More items would delay the server's other clients.
        """
        return max(1, SLICE // self.width)

    def growth(self, count: int) -> int:
        """Returns the bytes that adding `count` items would allocate, or 0."""
        if self._pool is None or self._matrix is None:
            described = _LAYOUT_BYTES + _COLUMN_BYTES * len(self.columns)
            return described + 4 * self.width * max(count, 64 // self.width)
        rows = self._rows_for(count)
        return 4 * self.width * rows if rows > len(self._matrix) else 0

    def add(self, slots: np.ndarray) -> np.ndarray:
        """Adds items, given their slots `[n, W]`; returns their rows, int32 `[n]`."""
        pool = self._pool
        matrix = self._matrix
        if pool is None or matrix is None:
            pool = self._pool = row_pool.RowPool()
            rows = max(len(slots), 64 // self.width, 1)
            matrix = self._matrix = np.empty(rows, f"V{4 * self.width}")
        rows = self._rows_for(len(slots))
        if rows > len(matrix):
            matrix = self._matrix = arrays_lib.doubled(matrix, rows)
        self.store.retain(slots)
        added = pool.allocate(len(slots))
        data = np.ascontiguousarray(slots, np.int32).reshape(-1).view(matrix.dtype)
        assert len(data) == len(added), "The number of slots differs from the layout's."
        matrix[added.astype(np.intp)] = data
        return added

    def slots(self, rows: np.ndarray) -> np.ndarray:
        """Returns the slots, int32 `[n, W]`, of the items in `rows` `[n]`."""
        assert self._matrix is not None, "The layout has no items."
        data = self._matrix.take(rows.astype(np.intp), mode="clip")
        return data.view(np.int32).reshape(-1, self.width)

    def remove(self, rows: np.ndarray) -> np.ndarray:
        """Removes the items in `rows` `[n]`.

        Returns:
          Their slots, int32 `[n, W]`, whose references the caller has to release.
        """
        slots = self.slots(rows)
        assert self._pool is not None
        self._pool.release(rows)
        if not self._pool.in_use:
            self._pool = self._matrix = None
        return slots

    def gather(self, slots: np.ndarray) -> list[np.ndarray]:
        """Returns the data of items.

        Args:
          slots: int32 `[n, W]`, as `slots` returns them.

        Returns:
          One array per column, `[n, T, *row shape]`, or `[n, *row shape]` if squeezed.
        """
        return [self.store.read(*source) for source in self._sources(slots)]

    def gathering(
        self, slots: np.ndarray, allocate: Callable[[int], np.ndarray]
    ) -> Generator[None, None, list[np.ndarray]]:
        """Does the same as `gather` in slices, one per step of the generator.

        Args:
          slots: See `gather`.
          allocate: Returns an array, uint8, of a number of bytes.
        """
        gathered = []
        for source in self._sources(slots):
            gathered.append((yield from self.store.reading(*source, allocate)))
        return gathered

    def _sources(self, slots: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yields each column's number in the store, and the slots to read."""
        slots = slots.astype(np.intp, copy=False)
        for column, range_, squeezed in self.columns:
            start = self._offsets[range_]
            if squeezed:
                yield column, slots[:, start]
            else:
                yield column, slots[:, start : self._offsets[range_ + 1]]

    def definition(self) -> dict[str, Any]:
        """Returns the description that readers need, as a JSON object."""
        columns = []
        for column, range_, squeezed in self.columns:
            dtype, shape = self.store.columns[column]
            columns.append(
                {
                    "dtype": dtype,
                    "shape": list(shape),
                    "range": range_,
                    "squeezed": squeezed,
                    "column": column,
                }
            )
        return {
            "schema": self.store.schema_id,
            "mapped": self.store.fd is not None,
            "columns": columns,
            "lengths": list(self.lengths),
        }

    def _rows_for(self, count: int) -> int:
        """Returns the number of rows of the matrix with `count` more items."""
        assert self._pool is not None
        assert self._matrix is not None
        end, rows = self._pool.end_after(count), len(self._matrix)
        return max(end, 2 * rows) if end > rows else rows


def check_sources(
    store: step_store.StepStore,
    columns: tuple[tuple[Any, ...], ...],
    lengths: tuple[Any, ...],
) -> tuple[ColumnSource, ...]:
    """Returns the sources of a new layout's columns, after checking them.

    Raises:
      ValueError: If the columns do not fit the store or the ranges.
    """
    if len(columns) > wire.MAX_COLUMNS or len(lengths) > wire.MAX_COLUMNS:
        raise ValueError(
            f"Got {len(columns)} columns and {len(lengths)} ranges for an item, "
            f"expected at most {wire.MAX_COLUMNS}."
        )
    if not columns:
        raise ValueError("Got an item without columns, expected at least one.")
    whole = all(type(length) is int and length > 0 for length in lengths)
    if not (whole and lengths and sum(lengths) <= MAX_WIDTH):
        raise ValueError(
            f"Got ranges of {reprlib.repr(lengths)} steps for an item, expected "
            f"positive integers with a sum of at most {MAX_WIDTH}."
        )
    sources = []
    for source in columns:
        if not (
            len(source) == 3
            and _is_index(source[0], len(store.columns))
            and _is_index(source[1], len(lengths))
            and isinstance(source[2], bool | int)
            and not (source[2] and lengths[source[1]] != 1)
        ):
            raise ValueError(
                f"Got {reprlib.repr(source)} for a column of an item, expected "
                f"(column, range, squeezed) with one of {len(store.columns)} columns "
                f"and one of the ranges of {reprlib.repr(lengths)} steps; a squeezed "
                "range has 1 step."
            )
        sources.append(ColumnSource(source[0], source[1], bool(source[2])))
    return tuple(sources)


def _is_index(value: Any, length: int) -> bool:
    return type(value) is int and 0 <= value < length
