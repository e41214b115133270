"""The interfaces between a session and its requests, and checks of requests.

A session passes each message to its `Handlers`. A message that cannot be answered
immediately becomes a `Request`, and the session calls its `advance` until it is done. A
request sees its session as a `Caller`.
"""

from __future__ import annotations

import abc
import collections
import enum
import reprlib
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from typing_extensions import override

from tfrl.replay_service import errors
from tfrl.replay_service.engine.tables import sum_tree
from tfrl.replay_service.transport import wire

_MOST_SHOWN = 200  # Characters of a name in an error message.


class Continuation(enum.Enum):
    """How a session continues after `Request.advance`."""

    DONE = "done"
    AGAIN = "again"  # There is more to do now.
    PARKED = "parked"  # Wait until something calls the session's `proceed`.


DONE, AGAIN, PARKED = Continuation.DONE, Continuation.AGAIN, Continuation.PARKED


class Caller(Protocol):
    """The part of a session that its requests use.

    Attributes:
      shared: Whether the client reads steps from the server's memory.
      waiting_since: The loop's time when the current request began to wait.
    """

    shared: bool
    waiting_since: float

    def send(
        self, kind: int, meta: Mapping[str, Any], arrays: Sequence[np.ndarray] = ()
    ) -> None:
        """Sends a message to the client."""

    def send_error(self, error: Exception, **more: Any) -> None:
        """Sends an ERROR message to the client."""

    def proceed(self) -> None:
        """Continues with the request that was waiting."""

    def now(self) -> float:
        """Returns the loop's time, in seconds."""

    def wait_until(self, delay: float) -> None:
        """Calls the current request's `expire` if it still waits after `delay`."""

    def close(self) -> None:
        """Ends the session."""


class Request(abc.ABC):
    """A request that may have to wait before it is done."""

    @abc.abstractmethod
    def advance(self, woken: bool) -> Continuation | collections.deque[Caller]:
        """Does as much of the work as possible now.

        Args:
          woken: Whether it is this request's turn among the waiting requests.

        Returns:
          A `Continuation`, or the queue in which the caller has to wait.
        """

    def expire(self) -> None:
        """Ends the request because its time limit is over."""
        # Most requests have no time limit.
        return

    def close(self) -> None:
        """Releases everything that the request holds, before or after it is done."""
        # Most requests hold nothing.
        return


class SlicedRequest(Request):
    """A request that never waits, but is worked on in slices.

    Other sessions have their turns between the slices.
    """

    def __init__(self, work: Generator[None, None, None]):
        """Creates a request.

        Args:
          work: Does one slice of the work per step, and answers the request.
        """
        self._work = work

    @override
    def advance(self, woken: bool) -> Continuation:
        """Does the next slice.

        Args:
          woken: Not used.
        """
        for _ in self._work:
            return AGAIN
        return DONE

    def close(self) -> None:
        """Ends the work."""
        self._work.close()


class Handlers(Protocol):
    """The handlers of one session's messages, and their state between messages."""

    def greet(self, hello: Mapping[str, Any]) -> dict[str, Any]:
        """Prepares for the client's role; returns extra fields for the welcome."""

    def handles(self, kind: int) -> bool:
        """Returns whether there is a handler for messages of this kind."""

    def handle(self, frame: wire.Frame) -> Request | None:
        """Handles a message; returns a request for unfinished work, or None."""

    def close(self) -> None:
        """Releases everything that the handlers keep for the session."""


def check_array(array: np.ndarray, dtype: Any, shape: tuple[int | None, ...]) -> None:
    """Checks the dtype and shape of an array in a message.

    Args:
      array: The array.
      dtype: The expected dtype.
      shape: The expected shape; None stands for any size.

    Raises:
      ProtocolError: If the dtype or the shape differs.
    """
    if array.dtype != dtype or not (
        array.shape == shape
        or (
            array.ndim == len(shape)
            and all(
                size is None or size == other
                for size, other in zip(shape, array.shape, strict=True)
            )
        )
    ):
        raise errors.ProtocolError(
            f"Got an array of {array.dtype.name} {array.shape}, expected "
            f"{np.dtype(dtype).name} {shape}."
        )


def check_count(value: Any, what: str, least: int = 0) -> int:
    """Returns `value` after checking that it is an int64 of at least `least`.

    Args:
      value: The value to check.
      what: The name of the value in error messages.
      least: The smallest valid value.

    Raises:
      ProtocolError: If `value` is not such an integer.
    """
    if type(value) is not int or not least <= value < 2**63:
        raise errors.ProtocolError(
            f"{what}: got {reprlib.repr(value)}, expected an integer of at least "
            f"{least}."
        )
    return value


def shown(name: Any) -> str:
    """Returns the name of a table for an error message; long values are shortened."""
    is_name = isinstance(name, str) and len(name) <= _MOST_SHOWN
    return str(name) if is_name else reprlib.repr(name)


def priorities_error(table: str, priorities: np.ndarray) -> ValueError | None:
    """Returns an error for the priorities `[n]` of items, or None if they are valid."""
    # Both comparisons are false for NaN.
    largest = sum_tree.LARGEST_WEIGHT
    if not len(priorities) or (priorities.min() >= 0 and priorities.max() <= largest):
        return None
    (bad,) = np.nonzero(~((priorities >= 0) & (priorities <= largest)))
    return ValueError(
        f"Priority {priorities[bad[0]]} for table '{table}', expected a finite number "
        f"from 0 to {largest:.0e}, so that sums of priorities are finite; check the "
        "losses that priorities are made of."
    )
