"""References to the steps of a writer's history, from which items are created."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfrl.replay_service.writing.column import Column


class TrajectoryColumn:
    """A column of an item: a reference to some steps of one leaf.

    `history[...]` returns a column. Items can use it while the writer keeps the steps.

    Attributes:
      is_squeezed: Whether the column is a single step without a time dimension.
    """

    __slots__ = ("_column", "_extent", "_start", "is_squeezed")

    def __init__(
        self,
        column: Column,
        start: int,
        extent: int | tuple[int, ...],
        is_squeezed: bool = False,
    ):
        """Creates a reference; a writer's history calls this.

        Args:
          column: The leaf.
          start: The earliest step.
          extent: The number of consecutive steps, or, if they are not consecutive, the
            distance of each step from the start.
          is_squeezed: See the attribute.
        """
        self._column = column
        self._start = start
        self._extent = extent
        self.is_squeezed = is_squeezed

    def __len__(self) -> int:
        """Returns the number of steps."""
        extent = self._extent
        return extent if type(extent) is int else len(extent)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[TrajectoryColumn]:
        """Yields each step as a squeezed column."""
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: int | slice | list[int]) -> TrajectoryColumn:
        """Returns the selected steps as a column, squeezed if `key` is an integer.

        Raises:
          IndexError: If there is no such step.
          TypeError: If `key` is not an integer, a slice or a list of integers.
        """
        steps = self.steps
        if isinstance(key, int | np.integer):
            return TrajectoryColumn(self._column, steps[key], 1, True)
        if isinstance(key, slice):
            return from_steps(self._column, steps[key])
        if isinstance(key, list):
            return from_steps(self._column, [steps[i] for i in key])
        raise TypeError(
            f"TrajectoryColumn indices must be integers or slices, not {type(key)}"
        )

    def __repr__(self) -> str:
        """Returns a readable description."""
        squeezed = ", squeezed" if self.is_squeezed else ""
        return (
            f"TrajectoryColumn(path={self._column.path}, {len(self)} steps{squeezed})"
        )

    @property
    def steps(self) -> Sequence[int]:
        """The numbers of the steps, counted over all of the writer's episodes."""
        start, extent = self._start, self._extent
        if isinstance(extent, int):
            return range(start, start + extent)
        return [start + distance for distance in extent]

    @property
    def shape(self) -> tuple[int, ...]:
        """The leaf's shape, preceded by the number of steps unless squeezed."""
        shape = tuple(self._column.shape)
        return shape if self.is_squeezed else (len(self), *shape)

    @property
    def dtype(self) -> np.dtype:
        """The leaf's dtype."""
        return self._column.dtype

    def numpy(self) -> np.ndarray:
        """Returns a copy of the data as an array of `shape`.

        Raises:
          RuntimeError: If the writer no longer keeps the steps.
        """
        steps = self.steps
        if not all(map(self._column.is_available, steps)):
            raise RuntimeError(
                "Cannot convert TrajectoryColumn with expired data references to numpy "
                "array. Convert it before so many steps are appended, or raise "
                "num_keep_alive_refs."
            )
        values = self._column.read(steps)
        return values[0] if self.is_squeezed else values


class ColumnHistory:
    """The values of one leaf so far, indexed like a list.

    Items can use a step if it has a value and is one of the last `num_keep_alive_refs`
    steps. Iteration yields None for every other step.
    """

    __slots__ = ("_column",)

    def __init__(self, column: Column):
        """Creates the history of a column; a writer calls this."""
        self._column = column

    def __len__(self) -> int:
        """Returns the number of steps so far."""
        buffers = self._column.buffers
        return buffers.end - buffers.start

    def __iter__(self) -> Iterator[TrajectoryColumn | None]:
        """Yields each step as a squeezed column, or None if it cannot be used."""
        column = self._column
        for step in range(column.buffers.start, column.buffers.end):
            yield (
                TrajectoryColumn(column, step, 1, True)
                if column.is_available(step)
                else None
            )

    def __getitem__(self, key: int | slice | list[int]) -> TrajectoryColumn:
        """Returns some steps as a column of an item.

        Args:
          key: An integer for a single step, squeezed; a slice; or a list of integers.
            Negative integers count back from the newest step. A slice with one bound,
            such as `[:-1]` or `[-1::-1]`, that is open towards the past ends at the
            oldest step that is kept.

        Raises:
          ValueError: If one of the steps has no value or is no longer kept.
          IndexError: If one of the steps is in the future.
          TypeError: If `key` is of another type.
        """
        column = self._column
        # Fast paths for the last few steps, and for a single one.
        if type(key) is slice and key.stop is None and key.step is None:
            back = key.start
            if type(back) is int and -column.keep <= back < 0:
                start = column.buffers.end + back
                if start >= column.first_contiguous_step:
                    return TrajectoryColumn(column, start, -back)
        elif type(key) is int and key < 0:
            step = column.buffers.end + key
            if column.is_available(step):
                return TrajectoryColumn(column, step, 1, True)
        return self._cut(key)

    def __repr__(self) -> str:
        """Returns a readable description."""
        return f"ColumnHistory(path={self._column.path}, {len(self)} steps)"

    def _cut(self, key: Any) -> TrajectoryColumn:
        if isinstance(key, int | np.integer):
            (step,) = self._checked([self._position(int(key))], key)
            return TrajectoryColumn(self._column, step, 1, True)
        if isinstance(key, slice):
            return self._cut_slice(key)
        if isinstance(key, list):
            steps = self._checked([self._position(int(i)) for i in key], key)
            return from_steps(self._column, steps)
        raise TypeError(
            f"_ColumnHistory indices must be integers or slices, not {type(key)}"
        )

    def _cut_slice(self, key: slice) -> TrajectoryColumn:
        column, length = self._column, len(self)
        found = range(length)[key]
        is_forward = key.step is None or key.step > 0
        if is_forward and key.start is not None and key.start < -length:
            # A request for too many steps must fail, not return fewer steps.
            missing = [None] * (-length - key.start)
            return from_steps(column, self._checked([*missing, *found], key))
        found = self._kept_of_open(key, found)
        if found and found.step == 1 and self._are_there(found[0]):
            start = column.buffers.start + found[0]
            return TrajectoryColumn(column, start, len(found))
        return from_steps(column, self._checked(found, key))

    def _kept_of_open(self, key: slice, found: range) -> range:
        """Returns the positions of a slice that is open towards the past alone.

        As in Reverb, such a slice ends at the oldest step that is kept, as long as the
        bound that it has is not older. Other slices are left as they are.
        """
        length = len(self)
        oldest = max(length - self._column.keep, 0)
        start, stop, step = key.indices(length)
        if step > 0 and key.start is None and key.stop is not None:
            return found if 0 < stop < oldest else range(oldest, stop, step)
        if step < 0 and key.stop is None and key.start is not None:
            return found if start < oldest else range(start, oldest - 1, step)
        return found

    def _are_there(self, position: int) -> bool:
        """Returns True if all steps from `position` on are known to be usable."""
        column = self._column
        step = column.buffers.start + position
        return (
            step >= column.first_contiguous_step
            and step >= column.buffers.end - column.keep
        )

    def _position(self, index: int) -> int | None:
        length = len(self)
        if index >= length and index > 0:
            raise IndexError(
                f"list index out of range: got step {index} of column "
                f"{self._column.path}, which has {length}."
            )
        index += length if index < 0 else 0
        return index if 0 <= index < length else None

    def _checked(self, positions: Sequence[int | None], key: Any) -> list[int]:
        """Returns the steps at these positions; raises an error if one is unusable."""
        column = self._column
        start = column.buffers.start
        steps = [
            start + p if p is not None and column.is_available(start + p) else None
            for p in positions
        ]
        found = [step for step in steps if step is not None]
        if len(found) < len(steps):
            path = (*column.path, key)
            got = [None if step is None else f"step {step - start}" for step in steps]
            shown = ", ".join(map(str, got[:20])) + (", ..." if len(got) > 20 else "")
            raise ValueError(
                "TrajectoryColumns cannot contain any None data references: "
                f"TrajectoryColumn at path {path} got [{shown}]. Of {len(self)} steps "
                f"the last {column.keep} are kept (num_keep_alive_refs), if they have "
                "this leaf: keep more, or refer to fewer."
            )
        return found


def from_steps(column: Column, steps: Sequence[int]) -> TrajectoryColumn:
    """Returns a column of the given steps, which may be in any order."""
    if not steps:
        return TrajectoryColumn(column, 0, 0)
    low, count = min(steps), len(steps)
    if list(steps) == list(range(low, low + count)):
        return TrajectoryColumn(column, low, count)
    return TrajectoryColumn(column, low, tuple(step - low for step in steps))
