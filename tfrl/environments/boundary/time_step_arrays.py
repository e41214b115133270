"""`TimeStepArrays`: the latest time step of an environment, as programs read it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfrl.compilation import words
from tfrl.environments.boundary import time_step_checker
from tfrl.trajectories import time_step as ts


class TimeStepArrays:
    """Holds the latest time step that has passed the checks.

    A time step is written to the memory from which it is passed to a program, so that
    it is copied once, and its floating numbers are checked together.
    """

    def __init__(
        self, checker: time_step_checker.TimeStepChecker, layout: words.WordLayout
    ):
        """Makes the arrays.

        Args:
          checker: Checks the time steps.
          layout: How programs read the flat time step, `[B, ...]`.
        """
        self._checker = checker
        # A time step that breaks its spec leaves the one before as it was.
        self._latest, self._next = layout.make_arrays(), layout.make_arrays()
        self.is_set = False

    @property
    def stored(self) -> list[np.ndarray]:
        """The latest time step as programs read it; a later update overwrites it."""
        return self._latest.stored

    def copies(self) -> list[np.ndarray]:
        """Returns copies of the arrays of the latest time step, flat."""
        return [array.copy() for array in self._latest.values]

    def update(self, time_step: ts.TimeStep, step: int) -> None:
        """Checks a time step, and makes it the latest.

        Args:
          time_step: The time step that the environment returned.
          step: The number of the step, for messages.

        Raises:
          ValueError: If the time step breaks its spec.
        """
        arrays = self._next
        self._checker.write(time_step, step, arrays.values, arrays.floats)
        self._next, self._latest = self._latest, arrays
        self.is_set = True

    def set(self, flat: Sequence[np.ndarray] | None) -> None:
        """Restores the arrays that `copies` returned; None forgets the time step.

        Raises:
          ValueError: If there are more arrays, or fewer, than in a time step.
        """
        if flat is not None:
            for array, value in zip(self._latest.values, flat, strict=True):
                array[...] = value
        self.is_set = flat is not None
