"""Prints values as lines of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfrl.loggers import base
from tfrl.system import throttle


class TerminalLogger:
    """Prints `[Label] Name = 1.000 | Other Name = 2` for each write, sorted by key.

    The first write is always printed; a later write is dropped if it comes within
    `time_delta` seconds of the last printed one.
    """

    def __init__(
        self,
        label: str = "",
        print_fn: Callable[[str], Any] = print,
        serialize_fn: Callable[[base.Values], str] | None = None,
        time_delta: float = 0.0,
    ) -> None:
        """Creates a logger.

        Args:
          label: The start of every line.
          print_fn: A function that is called with each line.
          serialize_fn: A function that turns values into text; None takes `serialize`.
          time_delta: The least number of seconds between two lines.

        Raises:
          ValueError: If `time_delta` is negative.
        """
        self._label = f"[{_title(label)}] " if label else ""
        self._print = print_fn
        self._serialize = serialize_fn or serialize
        self._throttle = throttle.Throttle(time_delta)

    def write(self, values: base.Values) -> None:
        """Prints `values` if `time_delta` seconds have passed since the last line."""
        if self._throttle.is_due():
            self._print(f"{self._label}{self._serialize(values)}")
            self._throttle.restart()

    def close(self) -> None:
        """Does nothing."""


def serialize(values: base.Values) -> str:
    """Returns `Name = value` for each entry, sorted by key, in one line.

    Floating-point numbers have three decimals.
    """
    return " | ".join(f"{_title(k)} = {_format(v)}" for k, v in sorted(values.items()))


def _title(key: str) -> str:
    return key.replace("_", " ").title()


def _format(value: Any) -> str:
    value = base.to_plain(value)
    return f"{value:0.3f}" if isinstance(value, float) else str(value)
