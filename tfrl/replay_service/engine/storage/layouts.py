"""Layouts, which define the columns of items and hold the slots of each item.

A layout defines the columns of an item, and from which of the item's ranges of steps
each column takes its rows. The items of a layout are the rows of one matrix of slots,
so a batch of items is gathered in one operation. A table stores an item as a pair
(number of the layout, row in the layout's matrix), its payload.
"""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrl.replay_service.engine import arrays as arrays_lib
from tfrl.replay_service.engine.storage import memory, row_pool, step_store
from tfrl.replay_service.transport import wire

MAX_WIDTH = 1 << 24  # Maximum number of steps of one item.
_SLICE = 1 << 15  # References to steps that are added or released together.
_LAYOUT_BYTES, _COLUMN_BYTES = 1024, 64  # The approximate size of a layout.

_CHECKED_BYTES = 16 << 20  # Bytes allocated between two checks of the available memory.


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
        return max(1, _SLICE // self.width)

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


class Layouts:
    """The layouts of a server's items, with the slots of the items.

    A layout has a number while it has items, and is removed with its last item. Numbers
    are used again, so payloads stay small.
    """

    def __init__(self) -> None:
        """Creates a collection without layouts."""
        self._layouts: list[Layout | None] = []  # By number; None if it is free.
        self._free: list[int] = []
        self._by_key: dict[tuple[Any, ...], Layout] = {}
        self._held: list[np.ndarray] | None = None  # Payloads to remove after `hold`.
        self._ids = itertools.count()
        self._unchecked = 0  # Bytes used since memory was last checked.

    def __len__(self) -> int:
        """Returns the number of layouts that have items."""
        return len(self._by_key)

    @property
    def nbytes(self) -> int:
        """The memory used by the slots of all items, in bytes."""
        return sum(layout.nbytes for layout in self._by_key.values())

    def find(
        self,
        store: step_store.StepStore,
        columns: Iterable[Sequence[Any]],
        lengths: Sequence[int],
    ) -> Layout:
        """Returns a layout for `add`: an existing layout with items, or a new one.

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
            found = self._by_key.get(key)
        except TypeError:
            raise ValueError(
                f"Got a layout of columns {reprlib.repr(columns)} and lengths "
                f"{reprlib.repr(lengths)}, expected lists of (column, range, squeezed) "
                "and of lengths."
            ) from None
        if found is not None:
            return found
        checked = check_sources(store, sources, key[2])
        return Layout(next(self._ids), store, checked, key[2])

    def add(self, layout: Layout, slots: np.ndarray) -> np.ndarray:
        """Adds items, each of which keeps a reference to its slots.

        Args:
          layout: A layout that `find` returned.
          slots: int32 `[n, W]`, the steps of each item, range after range.

        Returns:
          The payloads of the items, int32 `[n, 2]`.

        Raises:
          ResourceExhaustedError: If there is not enough memory. Nothing is added.
        """
        if layout.number < 0:
            # Another writer may have added items of an equal layout meanwhile.
            layout = self._by_key.get(layout.key, layout)
        growth = layout.growth(len(slots))
        if growth:
            self._check_memory(growth)
        if layout.number < 0:
            self._register(layout)
        payloads = np.empty((len(slots), 2), np.int32)
        payloads[:, 0] = layout.number
        payloads[:, 1] = layout.add(slots)
        return payloads

    def get(self, number: int) -> Layout:
        """Returns the layout of this number, which has items."""
        layout = self._layouts[number]
        assert layout is not None, "The layout has no items."
        return layout

    def slots(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Returns the slots, int32 `[n, W]`, of a layout's items in `rows` `[n]`."""
        return self.get(number).slots(rows)

    def store(self, number: int) -> step_store.StepStore:
        """Returns the store of the steps of a layout's items."""
        return self.get(number).store

    def definition(self, number: int) -> dict[str, Any]:
        """Returns the description of a layout that readers need, as a JSON object."""
        return self.get(number).definition()

    def hold(self) -> None:
        """Keeps all items until `resume`, although `remove` is called for them."""
        assert self._held is None, "The items are held already."
        self._held = []

    def resume(self) -> Iterator[None]:
        """Ends `hold`; returns an iterator that removes items, like `removing`."""
        assert self._held is not None, "The items are not held."
        held, self._held = self._held, None
        return itertools.chain.from_iterable(map(self.removing, held))

    def remove(self, payloads: np.ndarray) -> None:
        """Removes the items with these payloads, int32 `[n, 2]`, of any layouts."""
        for _ in self.removing(payloads):
            pass

    def removing(self, payloads: np.ndarray) -> Iterator[None]:
        """Does the same as `remove` in slices, one per step of the iterator.

        Other calls may come between the slices.
        """
        if not len(payloads):
            return
        layouts = payloads[:, 0]
        if len(payloads) == 1 or (layouts == layouts[0]).all():
            groups = [payloads]
        else:
            groups = [payloads[rows] for rows in group(layouts)]
        room = _SLICE
        for of_layout in groups:
            layout = self.get(of_layout[0, 0])
            for start in range(0, len(of_layout), layout.items_per_slice):
                if room <= 0:
                    yield
                    room = _SLICE
                part = of_layout[start : start + layout.items_per_slice]
                if self._held is None:
                    slots = self._remove(layout, part[:, 1])
                    yield from layout.store.releasing(slots)
                else:
                    self._held.append(part)
                room -= len(part) * layout.width

    def _remove(self, layout: Layout, rows: np.ndarray) -> np.ndarray:
        """Removes items; returns their slots, whose references remain."""
        slots = layout.remove(rows)
        if layout.is_empty:
            del self._by_key[layout.key]
            self._free.append(layout.number)
            self._layouts[layout.number] = None
            layout.number = -1
        return slots

    def _register(self, layout: Layout) -> None:
        self._by_key[layout.key] = layout
        if self._free:
            layout.number = self._free.pop()
            self._layouts[layout.number] = layout
        else:
            layout.number = len(self._layouts)
            self._layouts.append(layout)

    def _check_memory(self, growth: int) -> None:
        self._unchecked += growth
        if self._unchecked > _CHECKED_BYTES:
            size, self._unchecked = self._unchecked, 0
            memory.check(size)


def group(numbers: np.ndarray) -> list[np.ndarray]:
    """Returns one array of indices for each distinct number, in ascending order."""
    if not len(numbers):
        return []
    order = numbers.argsort(kind="stable")
    changes = np.flatnonzero(np.diff(numbers[order])) + 1
    return np.split(order, changes)
