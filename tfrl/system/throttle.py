"""Limits the frequency of an event."""

from __future__ import annotations

import time


class Throttle:
    """Tells whether `time_delta` seconds have passed since the last `restart`."""

    def __init__(self, time_delta: float) -> None:
        """Creates a throttle that is due until its first `restart`.

        Args:
          time_delta: The least number of seconds between two events.

        Raises:
          ValueError: If `time_delta` is negative.
        """
        if time_delta < 0:
            raise ValueError(
                f"time_delta: got {time_delta}, expected 0 or more seconds; pass 0 "
                "to let everything through."
            )
        self._time_delta = time_delta
        self._started = float("-inf")

    def is_due(self) -> bool:
        """Whether the time has passed."""
        return time.monotonic() - self._started >= self._time_delta

    def restart(self) -> None:
        """Starts a new wait; call this when the event happens."""
        self._started = time.monotonic()
