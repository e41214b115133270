"""`FlattenDictLogger`: turns dictionaries of values into values with longer names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfrl.loggers import base


class FlattenDictLogger:
    """Writes `{"loss": {"actor": 1}}` as `{"Logs/loss/actor": 1}`.

    >>> from tfrl.loggers import InMemoryLogger
    >>> memory = InMemoryLogger()
    >>> logger = FlattenDictLogger(memory, raw_keys=["step"])
    >>> logger.write({"step": 3, "loss": {"actor": 1, "critic": 2}})
    >>> memory.data
    [{'step': 3, 'Logs/loss/actor': 1, 'Logs/loss/critic': 2}]
    """

    def __init__(
        self, logger: base.Logger, label: str = "Logs", raw_keys: Sequence[str] = ()
    ) -> None:
        """Creates the logger.

        Args:
          logger: The logger to write to.
          label: The start of all names.
          raw_keys: The names to leave as they are; their values are not dictionaries.
        """
        self._logger = logger
        self._label = label
        self._raw_keys = frozenset(raw_keys)

    def write(self, values: base.Values) -> None:
        """Writes the values under their longer names."""
        flat: dict[str, Any] = {}
        for key, value in values.items():
            if key in self._raw_keys:
                flat[key] = value
            elif isinstance(value, Mapping):
                flat.update({f"{self._label}/{key}/{k}": v for k, v in value.items()})
            else:
                flat[f"{self._label}/{key}"] = value
        self._logger.write(flat)

    def close(self) -> None:
        """Closes the logger behind this one."""
        self._logger.close()
