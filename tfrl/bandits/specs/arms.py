"""Checks the arms in data: whole numbers from 0 on."""

from __future__ import annotations

from typing import Any

import numpy as np


def checked(name: str, values: Any, number: int | None = None) -> np.ndarray:
    """Returns arms as int64.

    Args:
      name: The argument's name, for the error.
      values: Numbers of any shape.
      number: The number of arms; None checks no bounds.

    Raises:
      ValueError: A value is not an arm.
    """
    values = np.asarray(values)
    with np.errstate(invalid="ignore"):
        arms = values.astype(np.int64)
    wrong = arms != values
    if number is not None:
        wrong |= (arms < 0) | (arms >= number)
    if np.any(wrong):
        last = "" if number is None else f" to {number - 1}"
        raise ValueError(
            f"{name}: got {values[wrong][0]}, expected whole numbers from 0{last}, "
            "each of an arm; subtract 1 from arms that begin at 1."
        )
    return arms
