"""Loggers that write to other loggers: filters, and what adds, copies and closes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence

from tfrl.loggers import base
from tfrl.system import throttle
from tfrl.utils import number_checks


class _Filter:
    """Base of loggers that pass values on to one other logger, `to`."""

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
        self._throttle = throttle.Throttle(time_delta)

    def write(self, values: base.Values) -> None:
        """Writes `values` if `time_delta` seconds have passed since the last write."""
        if self._throttle.is_due():
            self._to.write(values)
            self._throttle.restart()


class StepFilter(_Filter):
    """Drops writes within `step_delta` steps of the last write that was passed on."""

    def __init__(
        self, to: base.Logger, step_delta: float, steps_key: str = "steps"
    ) -> None:
        """Creates a filter; the first write passes.

        Args:
          to: The logger to write to.
          step_delta: The least difference between the steps of two writes.
          steps_key: The key under which the values hold the step.

        Raises:
          ValueError: If `step_delta` is negative.
        """
        super().__init__(to)
        number_checks.check_number(
            "step_delta", step_delta, 0, remedy="pass 0 to let everything through"
        )
        self._step_delta = step_delta
        self._steps_key = steps_key
        self._last_step = float("-inf")

    def write(self, values: base.Values) -> None:
        """Writes `values` if `step_delta` steps have passed since the last write.

        Raises:
          ValueError: If `steps_key` is not among the keys.
        """
        step = base.step_of(values, self._steps_key)
        if step - self._last_step >= self._step_delta:
            self._to.write(values)
            self._last_step = step


class GatedFilter(_Filter):
    """Passes on the writes that a function of the number of writes chooses."""

    def __init__(self, to: base.Logger, gating_fn: Callable[[int], bool]) -> None:
        """Creates the filter.

        Args:
          to: The logger to write to.
          gating_fn: Called at each write with the number of earlier writes; a write for
            which it returns False is dropped.
        """
        super().__init__(to)
        self._gating_fn = gating_fn
        self._num_writes = 0

    @classmethod
    def periodic(cls, to: base.Logger, interval: int = 10) -> GatedFilter:
        """Returns a filter that passes the first of every `interval` writes."""
        return cls(to, lambda number: number % interval == 0)

    @classmethod
    def logarithmic(cls, to: base.Logger, n: int = 10) -> GatedFilter:
        """Returns a filter that passes writes more and more rarely.

        With `n` of 10 it passes the writes 0, 1, 2, ..., 9, 10, 20, ..., 90, 100, 200
        and so on.
        """

        def is_multiple_of_magnitude(number: int) -> bool:
            magnitude = 1
            while magnitude * n <= number:
                magnitude *= n
            return number % magnitude == 0

        return cls(to, is_multiple_of_magnitude)

    def write(self, values: base.Values) -> None:
        """Writes `values` if `gating_fn` is true for this write."""
        if self._gating_fn(self._num_writes):
            self._to.write(values)
        self._num_writes += 1


class ConstantLogger(_Filter):
    """Adds constants, such as the name of a level or a setting, to all values."""

    def __init__(self, constant_data: base.Values, to: base.Logger) -> None:
        """Creates the logger.

        Args:
          constant_data: The constants, by name.
          to: The logger to write to.
        """
        super().__init__(to)
        self._constants = dict(constant_data)

    def write(self, values: base.Values) -> None:
        """Writes the constants and `values`; values replace constants of equal name."""
        self._to.write({**self._constants, **values})


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
