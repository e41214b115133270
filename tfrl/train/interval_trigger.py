"""Calls a function whenever a counter has grown by an interval."""

from __future__ import annotations

from collections.abc import Callable


class IntervalTrigger:
    """Calls a function if a value has grown by `interval` since the last call.

    The interval counts from the value at which the function was called last: with an
    interval of 10 and the values 9, 18, 27, 36, it is called at 18 and 36.
    """

    def __init__(self, interval: int, fn: Callable[[], object], start: int = 0) -> None:
        """Creates the trigger.

        Args:
          interval: The least growth between two calls; 0 or less never calls.
          fn: A function without arguments.
          start: The value from which the first interval counts.

        Raises:
          TypeError: `fn` cannot be called.
        """
        if not callable(fn):
            raise TypeError(
                f"fn: got {fn!r}, expected a function without arguments; pass the "
                "function itself, not its result."
            )
        self._interval = interval
        self._fn = fn
        self._original_start = start
        self._last = start

    def __call__(self, value: int, force_trigger: bool = False) -> None:
        """Calls the function if it is due.

        Args:
          value: The current value of the counter.
          force_trigger: Whether to call it even before it is due, unless it was already
            called at this value.
        """
        if self._interval <= 0:
            return
        is_due = value >= self._last + self._interval
        if is_due or (force_trigger and value != self._last):
            self._last = value
            self._fn()

    def reset(self) -> None:
        """Counts from the constructor's `start` again."""
        self._last = self._original_start

    def set_start(self, start: int) -> None:
        """Counts from `start`, such as the train step of a resumed run."""
        self._last = start
