"""Keeps values in a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrl.loggers import base


class InMemoryLogger:
    """Keeps all values, for tests and notebooks."""

    def __init__(self) -> None:
        """Creates the logger, without values."""
        self._data: list[dict[str, Any]] = []

    @property
    def data(self) -> Sequence[dict[str, Any]]:
        """All values written, the oldest first."""
        return self._data

    def write(self, values: base.Values) -> None:
        """Appends a copy of `values`."""
        self._data.append({key: base.to_plain(v) for key, v in values.items()})

    def close(self) -> None:
        """Does nothing; the data stays."""
