"""Divides a long computation into calls of about half a second."""

from __future__ import annotations

_SECONDS = 0.5
# A call is this many times as large as the one before at most, because the first steps
# may be much shorter than the later ones.
_GROWTH = 10


class CallSizes:
    """Chooses the number of steps of the next call, from the duration of the last call.

    Python handles a signal between two calls. The results must not depend on the sizes.
    """

    def __init__(self, first: int = 1) -> None:
        """Starts without a measurement.

        Args:
          first: The size of the first call.
        """
        self._largest = first
        self._per_step: float | None = None

    def choose(self, remaining: int) -> int:
        """Returns the size of the next call, at least 1 and at most `remaining`.

        If the remaining steps take less than half a second, they are one call.
        """
        if self._per_step is None:
            return min(self._largest, remaining)
        expected = remaining * self._per_step
        # One call is better than a call and a small rest.
        is_short = expected < 1.5 * _SECONDS
        if is_short and (remaining <= self._largest or expected < _SECONDS / _GROWTH):
            return remaining
        size = min(self._largest, int(_SECONDS / self._per_step))
        return min(max(1, size), remaining)

    def measured(self, size: int, seconds: float) -> None:
        """Records the duration of a call of `size` steps."""
        self._per_step = max(seconds, 1e-6) / size
        self._largest = _GROWTH * size
