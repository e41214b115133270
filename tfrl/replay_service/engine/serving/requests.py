"""What the requests of a session have in common."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from tfrl.replay_service import errors


class Outcome(enum.Enum):
    """What `advance` of a request returns, unless it is where the request waits."""

    DONE = "done"
    AGAIN = "again"  # There is more to do at once.
    PARKED = "parked"  # Until someone calls the session's `proceed`.


DONE, AGAIN, PARKED = Outcome.DONE, Outcome.AGAIN, Outcome.PARKED


def check_array(array: np.ndarray, dtype: Any, shape: tuple[int | None, ...]) -> None:
    """Checks an array of a message; None in `shape` stands for any size.

    Raises:
      ProtocolError: If it is another.
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
            f"An array of {array.dtype.name} {array.shape} came, expected "
            f"{np.dtype(dtype).name} {shape}."
        )


def check_count(value: Any, what: str, least: int = 0) -> int:
    """Returns `value`, which is to be a whole number from `least` to what int64 holds.

    Raises:
      ProtocolError: If it is not.
    """
    if type(value) is not int or not least <= value < 2**63:
        raise errors.ProtocolError(f"{what} is {value!r}, expected at least {least}.")
    return value


def priorities_error(table: str, priorities: np.ndarray) -> ValueError | None:
    """Returns what is wrong with the priorities `[n]` of items, or None."""
    # NaN is neither.
    if not len(priorities) or (priorities.min() >= 0 and priorities.max() < np.inf):
        return None
    (bad,) = np.nonzero(~((priorities >= 0) & (priorities < np.inf)))
    return ValueError(
        f"Priority {priorities[bad[0]]} for table '{table}', expected a finite number "
        "that is not negative; check the losses that priorities are made of."
    )
