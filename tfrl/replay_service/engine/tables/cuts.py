"""Copies arrays as they were at one time, while their owner continues to change them.

Copying the arrays of a large table would keep a server's clients waiting too long. So
another thread copies the arrays, and the owner records the old values of all elements
that it changes meanwhile. With these, the copies are corrected afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class Cut:
    """Copies of arrays, with the values that they had when the cut was made."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Starts the copies. The owner must call `record` before each later change.

        Args:
          arrays: Arrays of one dimension by name. The owner may replace them by longer
            ones or by new ones.
        """
        self._arrays = dict(arrays)
        self._recorded: list[tuple[str, np.ndarray, np.ndarray]] = []
        self._is_open = True

    def record(self, name: str, index: np.ndarray) -> None:
        """Records the values of an array's elements before they change.

        Args:
          name: The name of the array.
          index: `[N]` integers. Elements that did not exist when the cut was made are
            ignored.
        """
        if not self._is_open:
            return
        array = self._arrays[name]
        index = index[index < array.size]
        if index.size:
            self._recorded.append((name, index, array[index]))

    def copy(self) -> dict[str, np.ndarray]:
        """Returns copies, which `correct` then corrects. Any thread may call this."""
        return {name: array.copy() for name, array in self._arrays.items()}

    def close(self) -> None:
        """Stops recording, when `copy` has returned."""
        self._is_open = False

    def correct(self, copies: Mapping[str, np.ndarray]) -> None:
        """Corrects the result of `copy` after `close`. Any thread may call this."""
        # The first recorded value of an element is the one to keep.
        for name, index, values in reversed(self._recorded):
            copies[name][index] = values
