"""Loggers that pass on some of the values written to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from tfrl.loggers import base


class _Filter:
    """Base of loggers that pass values on to one other logger."""

    def __init__(self, to: base.Logger) -> None:
        self._to = to

    def write(self, values: base.Values) -> None:
        """Passes on the values that the filter lets through."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the logger behind the filter."""
        self._to.close()


class NoneFilter(_Filter):
    """Leaves out entries whose value is None; writes nothing if no entry is left."""

    def write(self, values: base.Values) -> None:
        """Writes the entries that are not None, if there are any."""
        kept = {key: value for key, value in values.items() if value is not None}
        if kept:
            self._to.write(kept)


class KeyFilter(_Filter):
    """Passes on only the keys in `keep`, or all keys except those in `drop`."""

    def __init__(
        self,
        to: base.Logger,
        *,
        keep: Iterable[str] | None = None,
        drop: Iterable[str] | None = None,
    ) -> None:
        """Creates a filter with either `keep` or `drop`.

        Raises:
          ValueError: Unless exactly one of `keep` and `drop` is given.
        """
        super().__init__(to)
        if (keep is None) == (drop is None):
            raise ValueError(
                f"keep, drop: got {keep!r} and {drop!r}, expected exactly one of them; "
                "leave the other out."
            )
        self._keep = keep is not None
        self._keys = frozenset(keep if keep is not None else drop or ())

    def write(self, values: base.Values) -> None:
        """Writes the entries whose keys are kept."""
        self._to.write(
            {k: v for k, v in values.items() if (k in self._keys) == self._keep}
        )


class TimeFilter(_Filter):
    """Drops writes within `time_delta` seconds of the last write that was passed on."""

    def __init__(self, to: base.Logger, time_delta: float) -> None:
        """Creates a filter; the first write passes.

        Raises:
          ValueError: If `time_delta` is negative.
        """
        super().__init__(to)
        if time_delta < 0:
            raise ValueError(
                f"time_delta: got {time_delta}, expected seconds of 0 or more; pass 0 "
                "to let everything through."
            )
        self._time_delta = time_delta
        self._last_time = float("-inf")

    def write(self, values: base.Values) -> None:
        """Writes `values` if `time_delta` seconds have passed since the last write."""
        now = time.monotonic()
        if now - self._last_time >= self._time_delta:
            self._to.write(values)
            self._last_time = now


class GatedFilter(_Filter):
    """Passes on writes for which `gating_fn()` is true."""

    def __init__(self, to: base.Logger, gating_fn: Callable[[], bool]) -> None:
        """Creates the filter.

        Args:
          to: The logger to write to.
          gating_fn: Called at each write; a write for which it returns False is
            dropped.
        """
        super().__init__(to)
        self._gating_fn = gating_fn

    def write(self, values: base.Values) -> None:
        """Writes `values` if `gating_fn()` is true."""
        if self._gating_fn():
            self._to.write(values)
