"""One leaf of a writer's steps: its type, and which steps have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrl.replay_service.writing.history import ColumnHistory
from tfrl.replay_service.writing.structure import Path

if TYPE_CHECKING:
    from tfrl.replay_service.writing.buffers import StepBuffers

_PYTHON_TYPES = {"int64": int, "float64": float, "bool": bool, "complex128": complex}


class Column:
    """One leaf of the steps.

    Attributes:
      path: Where it is in the data.
      buffers: What it is a column of.
      history: Of its values, what the writer's users index.
      keep: How many of the last steps can be referred to.
      index: Its number in the schema; None before its first value.
      dtype, shape: Of a value, from its first one on.
      scalars: Types of Python and NumPy scalars that are such values.
      array: The rows of the current block.
      solid: From this step on there are values in all steps.
      gaps: The steps of late that have none.
      created: The first step that could have one.
    """

    __slots__ = (
        "array",
        "buffers",
        "created",
        "dtype",
        "gaps",
        "history",
        "index",
        "keep",
        "path",
        "scalars",
        "shape",
        "solid",
    )

    def __init__(self, path: Path, buffers: StepBuffers, keep: int, created: int):
        self.path = path
        self.buffers = buffers
        self.history = ColumnHistory(self)
        self.keep = keep
        self.index: int | None = None
        self.dtype: Any = None
        self.shape: Any = None
        self.scalars: frozenset[type] = frozenset()
        self.array: Any = None
        self.created = self.solid = created
        self.gaps: list[int] = []

    def set_type(self, value: np.ndarray, index: int) -> None:
        """Takes dtype and shape from the first value."""
        self.dtype, self.shape, self.index = value.dtype, value.shape, index
        if not self.shape:
            python = _PYTHON_TYPES.get(self.dtype.name)
            self.scalars = frozenset(
                kind for kind in (self.dtype.type, python) if kind is not None
            )

    def has(self, step: int) -> bool:
        """Whether a step's value is there and can be referred to."""
        buffers = self.buffers
        oldest = max(buffers.start, self.created, buffers.end - self.keep)
        return oldest <= step < buffers.end and step not in self.gaps

    def read(self, steps: Sequence[int]) -> np.ndarray:
        """Returns the values of some steps, stacked."""
        return self.buffers.read(self, steps)

    def miss(self, step: int) -> None:
        """Notes that a step has no value."""
        self.gaps.append(step)
        self.solid = step + 1
        if len(self.gaps) > 2 * self.keep + 16:
            self.gaps = [gap for gap in self.gaps if gap >= step - self.keep]

    def fill(self) -> None:
        """Notes that the last step, which had none, has a value now."""
        self.gaps.pop()
        self.solid = self.gaps[-1] + 1 if self.gaps else self.created

    def clear(self, start: int) -> None:
        """Forgets all values before a step."""
        self.gaps = []
        self.created = self.solid = start
