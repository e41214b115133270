"""The interface of loggers, which record named values.

Loggers compose: a filter or a dispatcher is a logger that writes to other loggers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

# Numbers by name; NumPy scalars, scalar tensors and text are allowed too.
Values = Mapping[str, Any]


@runtime_checkable
class Logger(Protocol):
    """Anything with `write` and `close`."""

    def write(self, values: Values) -> None:
        """Records one set of values."""

    def close(self) -> None:
        """Releases the logger's resources; do not write to it afterwards."""


def to_plain(value: Any) -> Any:
    """Turns scalar tensors and NumPy scalars into Python numbers."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    return value.item() if getattr(value, "size", None) == 1 else value
