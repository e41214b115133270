"""`TimestampLogger`: adds the time to every write."""

from __future__ import annotations

import time

from tfrl.loggers import base


class TimestampLogger:
    """Adds the time, in seconds since 1970, to all values."""

    def __init__(self, logger: base.Logger, timestamp_key: str) -> None:
        """Creates the logger.

        Args:
          logger: The logger to write to.
          timestamp_key: The name of the time.
        """
        self._logger = logger
        self._timestamp_key = timestamp_key

    def write(self, values: base.Values) -> None:
        """Writes `values` and the time."""
        self._logger.write({**values, self._timestamp_key: time.time()})

    def close(self) -> None:
        """Closes the logger behind this one."""
        self._logger.close()
