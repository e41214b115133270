"""`TimeStepArrays`, the latest time step of an environment for compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tfrl.compilation import words
from tfrl.environments.boundary import time_step_checker
from tfrl.specs import bounds
from tfrl.trajectories import time_step as ts


class TimeStepArrays:
    """Holds the latest time step that has passed the checks.

    A time step is written to the memory from which it is passed to a program, so it is
    copied once, and all of its floats are checked together.
    """

    def __init__(
        self, checker: time_step_checker.TimeStepChecker, layout: words.WordLayout
    ):
        """Makes the arrays.

        Args:
          checker: Checks the time steps.
          layout: The layout in which programs read the flat time step, `[B, ...]`.
        """
        self._checker = checker
        # A time step that does not match its spec does not change the one before.
        self._latest, self._next = _Held.make(layout), _Held.make(layout)
        self.is_set = False

    @property
    def stored(self) -> list[np.ndarray]:
        """The latest time step in the layout of programs; an update overwrites it."""
        return self._latest.stored

    def copies(self) -> list[np.ndarray]:
        """Returns copies of the arrays of the latest time step, flat."""
        return [array.copy() for array in self._latest.values]

    def update(self, time_step: ts.TimeStep, step: int) -> list[np.ndarray]:
        """Checks a time step, makes it the latest, and returns `stored`.

        Args:
          time_step: The time step that the environment returned.
          step: The number of the step, for messages.

        Raises:
          ValueError: If the time step does not match its spec.
        """
        held = self._next
        self._checker.write(time_step, step, held.values, held.finite_checks)
        self._next, self._latest = self._latest, held
        self.is_set = True
        return held.stored

    def set(self, flat: Sequence[np.ndarray] | None) -> None:
        """Restores the arrays that `copies` returned; None forgets the time step.

        Raises:
          ValueError: If there are more arrays, or fewer, than in a time step.
        """
        if flat is not None:
            for array, value in zip(self._latest.values, flat, strict=True):
                array[...] = value
        self.is_set = flat is not None


class _Held(NamedTuple):
    """The arrays of one time step; see `words.WordArrays`."""

    stored: list[np.ndarray]
    values: list[np.ndarray]
    finite_checks: list[Callable[[], bool]]

    @classmethod
    def make(cls, layout: words.WordLayout) -> _Held:
        arrays = layout.make_arrays()
        checks = [bounds.make_finite_check(array) for array in arrays.floats]
        return cls(arrays.stored, arrays.values, checks)
