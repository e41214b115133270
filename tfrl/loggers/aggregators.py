"""A logger that passes values on to several loggers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfrl.loggers import base


class Dispatcher:
    """Writes values to each of several loggers, in order."""

    def __init__(
        self,
        to: Sequence[base.Logger],
        serialize_fn: Callable[[base.Values], base.Values] | None = None,
    ) -> None:
        """Creates the logger.

        Args:
          to: The loggers to write to.
          serialize_fn: A function whose result is written instead of the values, such
            as `to_numpy`; None writes the values themselves.
        """
        self._to = list(to)
        self._serialize = serialize_fn

    def write(self, values: base.Values) -> None:
        """Writes `values` to all loggers."""
        if self._serialize is not None:
            values = self._serialize(values)
        for logger in self._to:
            logger.write(values)

    def close(self) -> None:
        """Closes all loggers."""
        for logger in self._to:
            logger.close()
