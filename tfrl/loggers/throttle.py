"""Limits how often something happens."""

from __future__ import annotations

import time


class Throttle:
    """Says when `time_delta` seconds have passed since it last said so."""

    def __init__(self, time_delta: float) -> None:
        """Creates a throttle whose first answer is yes.

        Args:
          time_delta: The least number of seconds between two positive answers.

        Raises:
          ValueError: If `time_delta` is negative.
        """
        if time_delta < 0:
            raise ValueError(
                f"time_delta: got {time_delta}, expected seconds of 0 or more; pass 0 "
                "to let everything through."
            )
        self._time_delta = time_delta
        self._last_time = float("-inf")

    def is_due(self) -> bool:
        """Whether the time has passed; if so, the time starts again."""
        now = time.monotonic()
        if now - self._last_time < self._time_delta:
            return False
        self._last_time = now
        return True
