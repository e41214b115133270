"""A timer that adds up the durations of blocks of code."""

from __future__ import annotations

import time
from typing import Self


class Timer:
    """Adds up the seconds between `start` and `stop`, or inside a `with` block."""

    def __init__(self) -> None:
        """Creates a timer with a sum of 0."""
        self._accumulated = 0.0
        self._started: float | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the timer; the sum so far is kept."""
        self._started = time.perf_counter()

    def stop(self) -> None:
        """Stops the timer, and adds the seconds since `start` to the sum.

        Raises:
          RuntimeError: If the timer is not running.
        """
        if self._started is None:
            raise RuntimeError(
                "Timer.stop: the timer is not running, expected a start() before; call "
                "start(), or use the timer in a `with` block."
            )
        self._accumulated += time.perf_counter() - self._started
        self._started = None

    def value(self) -> float:
        """Returns the sum so far, without the seconds since `start`."""
        return self._accumulated

    def reset(self) -> None:
        """Sets the sum to 0; a running timer still counts from its last `start`."""
        self._accumulated = 0.0
