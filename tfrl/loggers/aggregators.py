"""A logger that passes values on to several loggers."""

from __future__ import annotations

from collections.abc import Sequence

from tfrl.loggers import base


class Dispatcher:
    """Writes values to each of several loggers, in order."""

    def __init__(self, to: Sequence[base.Logger]) -> None:
        """Creates the logger.

        Args:
          to: The loggers to write to.
        """
        self._to = list(to)

    def write(self, values: base.Values) -> None:
        """Writes `values` to all loggers."""
        for logger in self._to:
            logger.write(values)

    def close(self) -> None:
        """Closes all loggers."""
        for logger in self._to:
            logger.close()
