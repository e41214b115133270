"""Finds out how many threads step the members of a batch in the least time."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

# The steps with each number of threads in a comparison, and those until the next one.
_TRIALS = 9
_PERIOD = 5_000


class ThreadCounts:
    """Compares numbers of threads by the time of steps, and chooses one of them.

    Members that wait, for a device or for another process, take the least time with a
    thread each; members that compute outside of Python with a thread for each
    processor; members in Python one after the other, since only one of them can hold
    its lock. So a few steps are made with each number, in turn, and the one with the
    least median makes those that follow, until the next comparison.
    """

    def __init__(self, counts: Sequence[int]):
        """Makes the comparison of some numbers.

        Args:
          counts: The numbers; of equally fast ones, the first is chosen.
        """
        self._counts = list(dict.fromkeys(counts))
        self._times: list[list[float]] = [[] for _ in self._counts]
        self._chosen = 0
        self._steps = 0

    def next(self) -> int:
        """Returns the number of threads for the next step."""
        return self._counts[self._index()]

    def took(self, seconds: float) -> None:
        """Tells how long the step took."""
        if self._is_compared():
            self._times[self._index()].append(seconds)
        self._steps += 1
        if self._steps == _TRIALS * len(self._counts):
            medians = [statistics.median(times) for times in self._times]
            self._chosen = medians.index(min(medians))
            self._times = [[] for _ in self._counts]
        elif self._steps == _PERIOD:
            self._steps = 0

    def _is_compared(self) -> bool:
        return self._steps < _TRIALS * len(self._counts)

    def _index(self) -> int:
        return self._steps % len(self._counts) if self._is_compared() else self._chosen
