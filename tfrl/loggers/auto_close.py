"""Closes a logger that the program did not close."""

from __future__ import annotations

import weakref

from tfrl.loggers import base


class AutoCloseLogger:
    """Closes the logger behind it when it is deleted, or when the program ends.

    `close` closes that logger at once. It is closed only once.
    """

    def __init__(self, logger: base.Logger) -> None:
        """Creates the logger.

        Args:
          logger: The logger to write to.
        """
        self._logger = logger
        self._close = weakref.finalize(self, logger.close)

    def write(self, values: base.Values) -> None:
        """Writes `values` to the logger behind this one."""
        self._logger.write(values)

    def close(self) -> None:
        """Closes the logger behind this one, if it is open."""
        self._close()
