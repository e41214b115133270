"""The interface of loggers, which record named values.

Loggers compose: a filter or a dispatcher is a logger that writes to other loggers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import tree

# Numbers by name; arrays, tensors, text and None are allowed too.
Values = Mapping[str, Any]
# Acme's name of `Values`.
LoggingData = Values


@runtime_checkable
class Logger(Protocol):
    """An object that records values, with the methods `write` and `close`."""

    def write(self, values: Values) -> None:
        """Records one set of values."""

    def close(self) -> None:
        """Releases the logger's resources; do not write to it afterwards."""


class NoOpLogger:
    """Records nothing, for parts of a program that should be silent."""

    def write(self, values: Values) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class InMemoryLogger:
    """Keeps all values, for tests and notebooks."""

    def __init__(self) -> None:
        """Creates the logger, without values."""
        self._data: list[dict[str, Any]] = []

    @property
    def data(self) -> Sequence[dict[str, Any]]:
        """All values written, the oldest first."""
        return self._data

    def write(self, values: Values) -> None:
        """Appends a copy of `values`."""
        self._data.append({key: to_plain(v) for key, v in values.items()})

    def close(self) -> None:
        """Does nothing; the data stays."""


def step_of(values: Values, steps_key: str) -> Any:
    """Returns the step among `values`, a Python number.

    Raises:
      ValueError: If `steps_key` is not among the keys.
    """
    if steps_key not in values:
        raise ValueError(
            f"values: got the keys {list(values)}, but the step is expected under "
            f"{steps_key!r} (steps_key); write it with the other values."
        )
    return to_plain(values[steps_key])


def to_plain(value: Any) -> Any:
    """Turns tensors and arrays of one element into Python's numbers and text.

    Longer tensors become NumPy arrays; other values are returned as they are.
    """
    value = _to_array(value)
    if getattr(value, "size", None) == 1:
        value = value.item()
    return value.decode() if isinstance(value, bytes) else value


def to_numpy(values: Any) -> Any:
    """Turns the tensors and variables in a nest into NumPy arrays."""
    return tree.map_structure(_to_array, values)


def _to_array(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value
