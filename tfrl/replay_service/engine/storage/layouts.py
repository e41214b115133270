"""Layouts, which define the columns of items and hold the slots of each item.

A layout defines the columns of an item, and from which of the item's ranges of steps
each column takes its rows. The items of a layout are the rows of one matrix of slots,
so a batch of items is gathered in one operation. A table stores an item as a pair
(layout, row in the layout's matrix).
"""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrl.replay_service.engine.storage import row_pool, step_store
from tfrl.replay_service.transport import limits

MAX_WIDTH = 1 << 24  # Maximum number of steps of one item.


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


class Layouts:
    """All layouts of a server, with the slots of their items."""

    def __init__(self) -> None:
        """Creates a collection without layouts."""
        self._layouts: list[_Layout | None] = []  # None: its store was dropped.
        self._indices: dict[tuple[Any, ...], int] = {}

    def __len__(self) -> int:
        """Returns the number of layouts."""
        return len(self._indices)

    @property
    def nbytes(self) -> int:
        """The memory used by the slots of all items, in bytes."""
        return sum(layout.nbytes for layout in self._layouts if layout is not None)

    def index(
        self,
        store: step_store.StepStore,
        columns: Iterable[Sequence[Any]],
        lengths: Sequence[int],
    ) -> int:
        """Returns the number of a layout, and creates the layout if it is new.

        Args:
          store: The store of the steps.
          columns: `(column of the steps, range, squeezed)` for each column of an item.
          lengths: The number of steps of each range.

        Raises:
          ValueError: If the columns do not fit the store or the ranges.
        """
        try:
            sources = tuple(map(tuple, columns))
            key = (store.schema_id, sources, tuple(lengths))
            index = self._indices.get(key)
        except TypeError:
            raise ValueError(
                f"Got a layout of columns {reprlib.repr(columns)} and lengths "
                f"{reprlib.repr(lengths)}, expected lists of (column, range, squeezed) "
                "and of lengths."
            ) from None
        if index is not None:
            return index
        layout = _Layout(store, _check(store, sources, key[2]), key[2])
        self._layouts.append(layout)
        return self._indices.setdefault(key, len(self._layouts) - 1)

    def forget(self, store: step_store.StepStore) -> None:
        """Removes the layouts of a store, to whose steps no item refers."""
        for key in [key for key in self._indices if key[0] == store.schema_id]:
            self._layouts[self._indices.pop(key)] = None

    def add(self, layout: int, slots: np.ndarray) -> np.ndarray:
        """Adds items, each of which keeps a reference to its slots.

        Args:
          layout: The number of the layout.
          slots: int32 `[n, W]`, the steps of each item, range after range.

        Returns:
          The payloads of the items, int32 `[n, 2]`.
        """
        payloads = np.empty((len(slots), 2), np.int32)
        payloads[:, 0] = layout
        payloads[:, 1] = self._layout(layout).add(slots)
        return payloads

    def slots(self, layout: int, rows: np.ndarray) -> np.ndarray:
        """Returns the slots, int32 `[n, W]`, of a layout's items in `rows` `[n]`."""
        return self._layout(layout).slots(rows)

    def store(self, layout: int) -> step_store.StepStore:
        """Returns the store of the steps of a layout's items."""
        return self._layout(layout).store

    def remove(self, payloads: np.ndarray) -> None:
        """Removes the items with these payloads, int32 `[n, 2]`, of any layouts."""
        if not len(payloads):
            return
        first = payloads[0, 0]
        layouts = payloads[:, 0]
        if len(payloads) == 1 or (layouts == first).all():
            self._layout(first).remove(payloads[:, 1])
            return
        for rows in group(layouts):
            self._layout(layouts[rows[0]]).remove(payloads[rows, 1])

    def gather(self, layout: int, slots: np.ndarray) -> list[np.ndarray]:
        """Returns the data of items.

        Args:
          layout: The number of the layout.
          slots: int32 `[n, W]`, as `slots` returns them.

        Returns:
          One array per column, `[n, T, *row shape]`, or `[n, *row shape]` if squeezed.
        """
        return self._layout(layout).gather(slots)

    def definition(self, layout: int) -> dict[str, Any]:
        """Returns the description of a layout that readers need, as a JSON object."""
        return self._layout(layout).definition()

    def _layout(self, number: int) -> _Layout:
        layout = self._layouts[number]
        assert layout is not None, "The layout was removed."
        return layout


def group(numbers: np.ndarray) -> list[np.ndarray]:
    """Returns one array of indices for each distinct number, in ascending order."""
    if not len(numbers):
        return []
    order = numbers.argsort(kind="stable")
    changes = np.flatnonzero(np.diff(numbers[order])) + 1
    return np.split(order, changes)


class _Layout:
    """One layout, with the slots of its items."""

    # Episodes of different lengths create thousands of these.
    __slots__ = ("_matrix", "_offsets", "_pool", "columns", "lengths", "store", "width")

    def __init__(
        self,
        store: step_store.StepStore,
        columns: tuple[ColumnSource, ...],
        lengths: tuple[int, ...],
    ):
        self.store = store
        self.columns = columns
        self.lengths = lengths
        self._offsets = tuple(itertools.accumulate(lengths, initial=0))
        self.width = self._offsets[-1]
        self._pool: row_pool.RowPool | None = None
        self._matrix: np.ndarray | None = None  # One element of a void dtype per item.

    @property
    def nbytes(self) -> int:
        if self._matrix is None or self._pool is None:
            return 0
        return self._matrix.nbytes + self._pool.nbytes

    def add(self, slots: np.ndarray) -> np.ndarray:
        pool = self._pool
        matrix = self._matrix
        if pool is None or matrix is None:
            pool = self._pool = row_pool.RowPool()
            matrix = np.empty(max(1, 64 // self.width), f"V{4 * self.width}")
        end = pool.end_after(len(slots))
        if end > len(matrix):
            longer = np.empty(max(end, 2 * len(matrix)), matrix.dtype)
            longer[: pool.end] = matrix[: pool.end]
            matrix = longer
        self._matrix = matrix
        self.store.retain(slots)
        rows = pool.allocate(len(slots))
        data = np.ascontiguousarray(slots, np.int32).reshape(-1).view(matrix.dtype)
        assert len(data) == len(rows), "The number of slots differs from the layout's."
        matrix[rows.astype(np.intp)] = data
        return rows

    def slots(self, rows: np.ndarray) -> np.ndarray:
        assert self._matrix is not None, "The layout has no items."
        data = self._matrix.take(rows.astype(np.intp), mode="clip")
        return data.view(np.int32).reshape(-1, self.width)

    def remove(self, rows: np.ndarray) -> None:
        slots = self.slots(rows)
        assert self._pool is not None
        self._pool.release(rows)
        if not self._pool.in_use:
            self._pool = self._matrix = None
        self.store.release(slots)

    def gather(self, slots: np.ndarray) -> list[np.ndarray]:
        slots = slots.astype(np.intp, copy=False)
        gathered = []
        for column, range_, squeezed in self.columns:
            start = self._offsets[range_]
            if squeezed:
                steps = slots[:, start]
            else:
                steps = slots[:, start : self._offsets[range_ + 1]]
            gathered.append(self.store.read(column, steps))
        return gathered

    def definition(self) -> dict[str, Any]:
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
            "columns": columns,
            "lengths": list(self.lengths),
        }


def _check(
    store: step_store.StepStore,
    columns: tuple[tuple[Any, ...], ...],
    lengths: tuple[Any, ...],
) -> tuple[ColumnSource, ...]:
    """Returns the sources of a new layout's columns, after checking them.

    Raises:
      ValueError: If the columns do not fit the store or the ranges.
    """
    if len(columns) > limits.COLUMNS or len(lengths) > limits.COLUMNS:
        raise ValueError(
            f"Got {len(columns)} columns and {len(lengths)} ranges for an item, "
            f"expected at most {limits.COLUMNS}."
        )
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
