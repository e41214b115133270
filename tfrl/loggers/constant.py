"""Adds values that stay the same to every write."""

from __future__ import annotations

from tfrl.loggers import base


class ConstantLogger:
    """Adds constants, such as the name of a level or a setting, to all values."""

    def __init__(self, constant_data: base.Values, to: base.Logger) -> None:
        """Creates the logger.

        Args:
          constant_data: The constants, by name.
          to: The logger to write to.
        """
        self._constants = dict(constant_data)
        self._to = to

    def write(self, values: base.Values) -> None:
        """Writes the constants and `values`; values replace constants of equal name."""
        self._to.write({**self._constants, **values})

    def close(self) -> None:
        """Closes the logger behind this one."""
        self._to.close()
