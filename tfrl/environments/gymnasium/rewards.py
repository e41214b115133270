"""Reads the rewards of Gymnasium's environments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrl.specs import bounds

_LEAST, _GREATEST = -bounds.FLOAT32_MAX, bounds.FLOAT32_MAX


def as_array(
    reward: Any, shape: tuple[int, ...], name: str, dtype: Any = np.float32
) -> np.ndarray:
    """Returns a reward as an array of `shape`.

    Args:
      reward: The reward that an environment returned.
      shape: The shape that it has to have, `()` for one number.
      name: The name of the environment, for the message.
      dtype: The floating-point dtype of the array.

    Raises:
      ValueError: If the reward has another shape, or does not consist of numbers that
        are finite in float32.
    """
    # This is the common case; np.float64 is a float, too. Comparisons with NaN are
    # false.
    if shape == () and isinstance(reward, float) and _LEAST <= reward <= _GREATEST:
        return np.array(reward, dtype)
    array = np.asarray(reward)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"reward: got {_shorten(reward)} of type {type(reward).__name__} from "
            f"{name}, expected {_expected(shape)}; correct the second value that its "
            "step returns."
        )
    if array.shape != shape:
        remedy = (
            "return rewards of that shape from its step"
            if shape
            else "return float(reward) from its step, or give the wrapper a "
            "reward_spec if its rewards are vectors"
        )
        raise ValueError(
            f"reward: got {_shorten(reward)} of shape {array.shape} from {name}, "
            f"expected {_expected(shape)}; {remedy}."
        )
    if array.dtype.kind == "f" and not bounds.is_finite_in_float32(array):
        raise ValueError(
            f"reward: got {bounds.describe_not_finite_in_float32(array)} from {name}, "
            "expected a finite number; correct the environment's reward, or clip it "
            "in a wrapper."
        )
    return array.astype(dtype)


def _expected(shape: tuple[int, ...]) -> str:
    return f"numbers of shape {shape}" if shape else "one number"


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
