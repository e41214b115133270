"""Checks that sizes and counts are whole numbers."""

from __future__ import annotations

import numbers
from typing import Any


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python's or NumPy's."""
    return isinstance(value, numbers.Integral)


def check(name: str, value: Any, least: int) -> None:
    """Checks the argument `name`.

    Raises:
      TypeError: It is not an integer, such as a quotient.
      ValueError: It is less than `least`.
    """
    if not is_whole(value):
        raise TypeError(
            f"{name}: got {value!r}, expected an integer; round it, as in n // 2."
        )
    if value < least:
        raise ValueError(f"{name}: got {value}, expected at least {least}; raise it.")


def from_number(name: str, value: Any) -> int:
    """Returns a number without a fraction, such as 1e6, as an integer.

    Raises:
      TypeError: It is not a number, or has a fraction, or is infinite.
    """
    if isinstance(value, numbers.Real) and (number := float(value)).is_integer():
        return int(number)
    raise TypeError(f"{name}: got {value!r}, expected a whole number; round it.")
