"""Copies rows of received samples into batches of arrays."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfrl.replay_service import signatures
from tfrl.replay_service.replay_sample import SampleInfo
from tfrl.replay_service.signatures import RowSpec
from tfrl.specs import dtype_names

if TYPE_CHECKING:
    from tfrl.replay_service.transport.arena_view import ArenaView

INFO_DTYPES = SampleInfo(
    *map(np.dtype, ("uint64", "float64", "int64", "float64", "int32"))
)

_ALIGNMENT = 64  # Bytes; TensorFlow copies arrays with a smaller alignment.
_SMALL = 1 << 16  # Bytes; smaller columns share one allocation.
_WORTH_KEEPING = 1 << 20  # Minimum bytes of a batch whose memory is reused.
_MOST_KEPT = 6  # Batches; enough for two prefetched batches and those in use.


class MessageLayout:
    """The columns of the items in a message, and the location of the items' steps.

    Attributes:
      specs: The dtype and shape of each column of a row.
      item_rows: The number of rows of an item: its time steps, or 1.
    """

    def __init__(
        self,
        definition: dict[str, Any],
        memory: ArenaView | None,
        timesteps: bool,
    ):
        """Creates a layout from the server's definition.

        Args:
          definition: The definition of the layout in a message.
          memory: The server's memory; None if messages contain the data.
          timesteps: Whether each row is a time step of an item, not a whole item.

        Raises:
          ValueError: If the columns of an item have different numbers of time steps.
        """
        lengths = definition["lengths"]
        self._ends = np.cumsum(lengths).tolist()
        self._lengths = lengths
        self._columns = [
            (column["range"], column["squeezed"], column["column"])
            for column in definition["columns"]
        ]
        self._memory = memory
        self._timesteps = timesteps
        columns = definition["columns"]
        self.item_rows = _count_timesteps(columns, lengths) if timesteps else 1
        self.specs: tuple[RowSpec, ...] = tuple(
            (
                dtype_names.dtype_from_name(column["dtype"]),
                (
                    *(() if self._is_flat(column) else (lengths[column["range"]],)),
                    *column["shape"],
                ),
            )
            for column in columns
        )

    def rows(self, arrays: Sequence[np.ndarray]) -> MessageRows:
        """Returns the rows of a message, given its arrays.

        If they are in the server's memory, the server keeps them until their release.
        """
        info, data = list(arrays[: len(INFO_DTYPES)]), arrays[len(INFO_DTYPES) :]
        if self.item_rows > 1:
            info = [np.repeat(array, self.item_rows) for array in info]
        if self._memory is None:
            if self._timesteps:
                data = [array.reshape(-1, *array.shape[2:]) for array in data]
            return MessageRows(self, info, list(data), [None] * len(data), pinned=False)
        slots = data[0].astype(np.intp)
        ranges: dict[tuple[int, bool], np.ndarray] = {}
        indices = []
        for range_, squeezed, _ in self._columns:
            key = (range_, squeezed)
            if key not in ranges:
                ranges[key] = self._steps_of(slots, range_, squeezed)
            indices.append(ranges[key])
        # The layout keeps a reference to the view, and so the memory stays mapped.
        memory = [self._memory.columns[column] for _, _, column in self._columns]
        return MessageRows(self, info, memory, list(indices), pinned=True)

    def _is_flat(self, column: dict[str, Any]) -> bool:
        return self._timesteps or bool(column["squeezed"])

    def _steps_of(self, slots: np.ndarray, range_: int, squeezed: bool) -> np.ndarray:
        end = self._ends[range_]
        if squeezed:
            return slots[:, end - 1]
        steps = slots[:, end - self._lengths[range_] : end]
        return steps.reshape(-1) if self._timesteps else steps


def _count_timesteps(columns: Sequence[dict[str, Any]], lengths: list[int]) -> int:
    found = {
        0 if column["squeezed"] else lengths[column["range"]] for column in columns
    }
    if len(found) != 1 or 0 in found:
        raise ValueError("Sampled trajectory cannot be decomposed into timesteps.")
    return found.pop()


class MessageRows:
    """The rows of a received message, which are taken step by step.

    Attributes:
      layout: The layout of the rows' items.
      left: The number of rows that have not been taken.
      pinned: Whether the server keeps the rows in its memory until their release.
    """

    __slots__ = (
        "_indices",
        "_info",
        "_position",
        "_sources",
        "layout",
        "left",
        "pinned",
    )

    def __init__(
        self,
        layout: MessageLayout,
        info: list[np.ndarray],
        sources: list[np.ndarray],
        indices: list[np.ndarray | None],
        pinned: bool,
    ):
        """Creates rows; see `MessageLayout.rows`."""
        self.layout = layout
        self.left = len(info[0])
        self.pinned = pinned
        self._info = info
        self._sources = sources
        self._indices = indices
        self._position = 0

    def take(self, batch: list[np.ndarray], offset: int, count: int) -> int:
        """Copies the next `count` rows into a batch.

        Args:
          batch: The arrays of the batch.
          offset: The index of the first row to write.
          count: The number of rows.

        Returns:
          The number of items whose first row was copied.
        """
        start, stop = self._position, self._position + count
        end = offset + count
        for array, target in zip(self._info, batch, strict=False):
            target[offset:end] = array[start:stop]
        for source, index, target in zip(
            self._sources, self._indices, batch[len(self._info) :], strict=True
        ):
            if index is None:
                target[offset:end] = source[start:stop]
            else:
                # The default mode "raise" would make a copy first.
                source.take(index[start:stop], 0, target[offset:end], "clip")
        self._position = stop
        self.left -= count
        item_rows = self.layout.item_rows
        return -(-stop // item_rows) + (-start // item_rows)

    def copy(self) -> None:
        """Copies the remaining rows out of the server's memory."""
        for i, index in enumerate(self._indices):
            if index is not None:
                self._sources[i] = self._sources[i].take(index, 0, mode="clip")
                self._indices[i] = None

    def items_left(self) -> int:
        """Returns the number of items without any taken row."""
        stop = self._position + self.left
        item_rows = self.layout.item_rows
        return stop // item_rows + (-self._position // item_rows)


class Batches:
    """Allocates memory for batches, and reuses the memory of unused batches."""

    def __init__(self, reuse: bool = False):
        """Creates an allocator without memory.

        Args:
          reuse: Whether to reuse the memory of large batches, which is faster because
            the system has to clear new memory. Users of a batch must keep references to
            its arrays, or to arrays that NumPy derived from them.
        """
        self._reuse = reuse
        self._key: tuple[Any, ...] | None = None
        self._plan = _Plan((), ())
        self._kept: list[_Memory] = []

    def take(self, specs: tuple[RowSpec, ...], count: int) -> list[np.ndarray]:
        """Returns arrays for `count` rows: `SampleInfo` fields, then the columns."""
        if self._key != (specs, count):
            self._key = (specs, count)
            self._plan = _make_plan(specs, count)
            self._kept.clear()
        if not self._reuse or sum(self._plan.sizes) < _WORTH_KEEPING:
            return _allocate(self._plan).arrays
        for memory in self._kept:
            if _is_unused(memory):
                return list(memory.arrays)
        memory = _allocate(self._plan)
        if len(self._kept) < _MOST_KEPT:
            self._kept.append(memory)
        return list(memory.arrays)


class FilledBatch:
    """A batch that the rows of several messages, or of several streams, fill.

    Attributes:
      arrays: `SampleInfo` fields, then the columns, each `[count, ...]`; empty until
        the first row, which determines the columns.
      filled: The number of rows.
    """

    __slots__ = ("_allocator", "_count", "_specs", "arrays", "filled")

    def __init__(self, allocator: Batches, count: int):
        """Creates a batch without rows.

        Args:
          allocator: Allocates its memory.
          count: The number of rows when it is full.
        """
        self.arrays: list[np.ndarray] = []
        self.filled = 0
        self._allocator = allocator
        self._count = count
        self._specs: tuple[RowSpec, ...] = ()

    @property
    def left(self) -> int:
        """The number of rows that are missing."""
        return self._count - self.filled

    def take(self, rows: MessageRows, count: int) -> int:
        """Copies rows into the batch.

        Args:
          rows: The rows of a message.
          count: The number of rows, at most `left`.

        Returns:
          The number of items whose first row was copied.

        Raises:
          ValueError: If the rows' shapes differ from earlier rows.
        """
        if not self.arrays:
            self._specs = rows.layout.specs
            self.arrays = self._allocator.take(self._specs, self._count)
        elif rows.layout.specs != self._specs:
            signatures.check_same_shapes(
                self._specs, rows.layout.specs, self.filled, len(INFO_DTYPES)
            )
        items = rows.take(self.arrays, self.filled, count)
        self.filled += count
        return items

    def finished(self) -> list[np.ndarray]:
        """Returns the arrays, cut to the rows that are filled."""
        if not self.left:
            return self.arrays
        return [array[: self.filled] for array in self.arrays]


class _Plan(NamedTuple):
    sizes: tuple[int, ...]  # The size of each block in bytes.
    # The shape, the dtype, the block and the start in the block, for each array.
    places: tuple[tuple[tuple[int, ...], np.dtype, int, int], ...]


class _Memory(NamedTuple):
    blocks: list[np.ndarray]
    arrays: list[np.ndarray]


def _make_plan(specs: tuple[RowSpec, ...], count: int) -> _Plan:
    places = []
    sizes = [0]
    columns = [*((dtype, ()) for dtype in INFO_DTYPES), *specs]
    for dtype, shape in columns:
        size = count * math.prod(shape) * dtype.itemsize
        size += -size % _ALIGNMENT
        if size < _SMALL:
            places.append(((count, *shape), dtype, 0, sizes[0]))
            sizes[0] += size
        else:
            places.append(((count, *shape), dtype, len(sizes), 0))
            sizes.append(size)
    return _Plan(tuple(sizes), tuple(places))


def _allocate(plan: _Plan) -> _Memory:
    blocks = [np.empty(size + _ALIGNMENT, np.uint8) for size in plan.sizes]
    starts = [-block.ctypes.data % _ALIGNMENT for block in blocks]
    arrays = [
        np.ndarray(shape, dtype, blocks[block], starts[block] + offset)
        for shape, dtype, block, offset in plan.places
    ]
    return _Memory(blocks, arrays)


def _is_unused(memory: _Memory) -> bool:
    """Returns whether only the memory itself refers to its arrays and blocks."""
    alone = _REFERENCES_ALONE
    if max(map(sys.getrefcount, memory.arrays)) > alone:
        return False
    expected = alone * len(memory.blocks) + len(memory.arrays)
    return sum(map(sys.getrefcount, memory.blocks)) <= expected


# The reference count of an object that only one list refers to.
_REFERENCES_ALONE = max(map(sys.getrefcount, [object()]))
