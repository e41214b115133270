"""Values as lines of text."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tfrl.loggers import base


class TerminalLogger:
    """Prints `[Label] Name = 1.000 | Other Name = 2` for each write.

    The first write is always printed; after it, those within `time_delta` seconds of
    the last one printed are not.
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
          print_fn: Is called with each line.
          serialize_fn: Turns values into text; None takes `serialize`.
          time_delta: The least number of seconds between two lines.
        """
        self._label = f"[{label.replace('_', ' ').title()}] " if label else ""
        self._print = print_fn
        self._serialize = serialize_fn or serialize
        self._time_delta = time_delta
        self._last_time = float("-inf")

    def write(self, values: base.Values) -> None:
        """Prints `values` if it is time."""
        now = time.monotonic()
        if now - self._last_time >= self._time_delta:
            self._print(f"{self._label}{self._serialize(values)}")
            self._last_time = now

    def close(self) -> None:
        """Does nothing."""


def serialize(values: base.Values) -> str:
    """Returns `Name = value` of each entry, in the order given."""
    return " | ".join(f"{_title(k)} = {_format(v)}" for k, v in values.items())


def _title(key: str) -> str:
    return key.replace("_", " ").title()


def _format(value: Any) -> str:
    value = base.to_plain(value)
    return f"{value:0.3f}" if isinstance(value, float) else str(value)
