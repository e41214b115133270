"""One leaf of a writer's steps: its type, and the steps that have a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tfrl.replay_service.writing.structure import Path

_PYTHON_TYPES = {"int64": int, "float64": float, "bool": bool, "complex128": complex}


class Steps(Protocol):
    """The source of a column's values: a `buffers.StepBuffers`.

    Attributes:
      start: The first step of the history.
      end: The number of steps so far.
    """

    start: int
    end: int

    def read(self, column: Column, steps: Sequence[int]) -> np.ndarray:
        """Returns a column's values at the given steps, stacked."""


class Column:
    """The type of one leaf of the steps, and the steps in which it has a value.

    Attributes:
      path: The path of the leaf in the data.
      buffers: The source of the column's values.
      keep: The number of recent steps that items can refer to.
      index: The number of the column in the schema; None before its first value.
      dtype: The dtype of the values; None before the first value.
      shape: The shape of each value; None before the first value.
      scalars: The types of Python and NumPy scalars that are valid values.
      array: The rows of the current block.
      first_contiguous_step: From this step on, every step has a value.
      missing_steps: Recent steps without a value, in ascending order.
      created: The first step that can have a value.
    """

    __slots__ = (
        "array",
        "buffers",
        "created",
        "dtype",
        "first_contiguous_step",
        "index",
        "keep",
        "missing_steps",
        "path",
        "scalars",
        "shape",
    )

    def __init__(self, path: Path, buffers: Steps, keep: int, created: int):
        """Creates a column without values.

        Args:
          path: See the attribute.
          buffers: See the attribute.
          keep: See the attribute.
          created: See the attribute.
        """
        self.path = path
        self.buffers = buffers
        self.keep = keep
        self.index: int | None = None
        self.dtype: Any = None
        self.shape: Any = None
        self.scalars: frozenset[type] = frozenset()
        self.array: Any = None
        self.created = self.first_contiguous_step = created
        self.missing_steps: list[int] = []

    def set_type(self, value: np.ndarray, index: int) -> None:
        """Sets dtype and shape from the first value.

        Args:
          value: The first value.
          index: The number of the column in the schema.
        """
        self.dtype, self.shape, self.index = value.dtype, value.shape, index
        if not self.shape:
            python = _PYTHON_TYPES.get(self.dtype.name)
            self.scalars = frozenset(
                kind for kind in (self.dtype.type, python) if kind is not None
            )

    def is_available(self, step: int) -> bool:
        """Returns whether a step has a value that items can refer to."""
        buffers = self.buffers
        oldest = max(buffers.start, self.created, buffers.end - self.keep)
        return oldest <= step < buffers.end and step not in self.missing_steps

    def are_available(self, first: int, last: int) -> bool:
        """Returns whether all steps from `first` to `last` are known to have a value.

        The result may be False although all have values, if a later step has none.
        """
        buffers = self.buffers
        oldest = max(buffers.start, self.first_contiguous_step, buffers.end - self.keep)
        return oldest <= first and last < buffers.end

    def read(self, steps: Sequence[int]) -> np.ndarray:
        """Returns the values at the given steps, stacked."""
        return self.buffers.read(self, steps)

    def mark_missing(self, step: int) -> None:
        """Records that a step has no value."""
        self.missing_steps.append(step)
        self.first_contiguous_step = step + 1
        if len(self.missing_steps) > 2 * self.keep + 16:
            self.missing_steps = [
                missing for missing in self.missing_steps if missing >= step - self.keep
            ]

    def mark_present(self) -> None:
        """Records that the last missing step has a value now."""
        self.missing_steps.pop()
        self.first_contiguous_step = (
            self.missing_steps[-1] + 1 if self.missing_steps else self.created
        )

    def clear(self, start: int) -> None:
        """Makes the values of all steps before `start` unavailable."""
        self.missing_steps = []
        self.created = self.first_contiguous_step = start
