"""Finds the limits of dtypes, and converts the bounds of specs to a dtype."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

FLOAT32_MAX = float(np.finfo(np.float32).max)
# If the sum of the squares is at most this, all numbers are finite in float32.
_SMALL_SUM = 1e38
_FEW = 32  # Up to this size, Python adds faster than NumPy multiplies.


def is_finite_in_float32(array: np.ndarray) -> bool:
    """Whether all numbers of a floating array are finite in float32."""
    # False for NaN. One product takes half the time of np.isfinite.
    if array.dtype.itemsize >= 4 and np.vdot(array, array) <= _SMALL_SUM:
        return True
    return not np.count_nonzero(_not_finite_in_float32(array))


def finite_test(
    dtype: np.dtype[Any], shape: tuple[Any, ...]
) -> Callable[[np.ndarray], bool]:
    """Returns the fastest `is_finite_in_float32` for arrays of a dtype and a shape."""
    if dtype != np.float32 or None in shape or math.prod(shape) > _FEW:
        return is_finite_in_float32
    return _few_are_finite if shape else _is_one_finite


def make_finite_check(array: np.ndarray) -> Callable[[], bool]:
    """Returns a function that checks whether `array` is finite in float32 when called.

    Args:
      array: A floating array whose numbers will change.
    """
    if array.dtype == np.float32 and array.ndim == 1 and array.size <= _FEW:
        # Python's floats have 64 bits, so their sum cannot overflow.
        as_list, is_finite = array.tolist, math.isfinite
        return lambda: is_finite(sum(as_list()))
    return lambda: is_finite_in_float32(array)


def describe_not_finite_in_float32(array: np.ndarray) -> str:
    """Describes the first number that is not finite in float32, for a message."""
    index = tuple(int(i) for i in np.argwhere(_not_finite_in_float32(array))[0])
    number = array[index]
    what = "NaN" if np.isnan(number) else f"{number}"
    at = f" at index {list(index)}" if index else ""
    why = " (infinite in float32)" if np.isfinite(number) else ""
    return f"{what}{at}{why}"


def _few_are_finite(array: np.ndarray) -> bool:
    # Python's floats have 64 bits, so their sum cannot overflow.
    return math.isfinite(sum(array.ravel().tolist()))


def _is_one_finite(array: np.ndarray) -> bool:
    return math.isfinite(array.item())


def _not_finite_in_float32(array: np.ndarray) -> np.ndarray:
    # NaN compares as false.
    return ~(np.abs(array.astype(np.float64)) <= FLOAT32_MAX)


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` is floating; includes bfloat16, which NumPy does not know."""
    return bool(np.issubdtype(dtype, np.floating)) or dtype.name == "bfloat16"


@functools.cache
def dtype_limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Returns the least and the greatest finite value of a dtype.

    Raises:
      TypeError: If the dtype has no order, such as strings and complex numbers.
    """
    if np.issubdtype(dtype, np.integer):
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if dtype == np.bool_:
        return False, True
    if np.issubdtype(dtype, np.floating):
        return np.finfo(dtype).min, np.finfo(dtype).max
    if is_floating(dtype):
        # This is imported already if there is a bfloat16 dtype.
        import ml_dtypes

        return ml_dtypes.finfo(dtype).min, ml_dtypes.finfo(dtype).max
    raise TypeError(
        f"dtype: got {dtype}, expected an integer, floating or boolean one, since only "
        "these have bounds and can be sampled; use ArraySpec, without bounds."
    )


def keeps_values(array: np.ndarray, dtype: Any) -> bool:
    """Whether a cast to `dtype` changes no number, such as a fraction to an integer."""
    with np.errstate(invalid="ignore"):
        return bool(np.all(array.astype(dtype) == array))


def clip_to_dtype(bound: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Returns `bound` with numbers that `dtype` cannot hold replaced by its limits."""
    low, high = dtype_limits(dtype)
    return np.where(bound <= low, low, np.where(bound >= high, high, bound))


def near_zero(
    minimum: np.ndarray, maximum: np.ndarray, dtype: np.dtype[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns bounds in which limits of a floating dtype are replaced by near ones.

    These are 1 from the other bound, or -1 and 1 where both are limits.
    """
    low, high = dtype_limits(dtype)
    has_low, has_high = minimum > low, maximum < high
    # In float64, so that the unused sides of the choices do not overflow.
    below, above = minimum.astype(np.float64), maximum.astype(np.float64)
    return (
        np.where(has_low, below, np.where(has_high, above - 1.0, -1.0)),
        np.where(has_high, above, np.where(has_low, below + 1.0, 1.0)),
    )


def as_bound(
    which: str, value: Any, shape: tuple[Any, ...], dtype: np.dtype[Any]
) -> np.ndarray:
    """Returns one bound of a spec as a read-only array of its dtype.

    Args:
      which: "minimum" or "maximum", for messages and for the default.
      value: The bound; None for the limit of the dtype. If the dtype is floating, this
        limit also replaces infinity.
      shape: The spec's shape, to which the bound must broadcast.
      dtype: The spec's dtype.

    Raises:
      ValueError: If the bound does not broadcast, is NaN, or does not fit the dtype.
      TypeError: If the dtype has no order.
    """
    low, high = dtype_limits(dtype)
    if value is None:
        value = low if which == "minimum" else high
    bound = np.array(value)
    if bound.dtype.kind == "f" and not is_floating(dtype):
        bound = np.array(value, object)  # NumPy rounds some large integers in lists.
    try:
        # A dimension of unknown length has one bound for all of its elements.
        np.broadcast_to(bound, [1 if dim is None else dim for dim in shape])
    except ValueError as error:
        raise ValueError(
            f"{which}: got a bound of shape {bound.shape}, expected one that "
            f"broadcasts to the spec's shape {shape}; give one number, or one for each "
            f"element ({error})."
        ) from error
    if is_floating(dtype):
        converted, valid = _as_finite_floats(bound, dtype)
    else:
        with np.errstate(invalid="ignore"):  # NaN
            valid = bool(np.all((bound >= low) & (bound <= high)))
        converted = bound.astype(dtype) if valid else bound
    if not valid:
        raise ValueError(
            f"{which}: got {bound}, expected numbers within the range [{low}, {high}] "
            f"of {dtype}; choose a wider dtype or tighter bounds."
        )
    converted.setflags(write=False)
    return converted


def _as_finite_floats(
    bound: np.ndarray, dtype: np.dtype[Any]
) -> tuple[np.ndarray, bool]:
    """Returns `bound` in `dtype` with infinities replaced, and whether it is valid.

    NaN is not valid, nor is a finite number that `dtype` rounds to infinity.
    """
    low, high = dtype_limits(dtype)
    with np.errstate(over="ignore"):
        converted = np.array(bound, dtype)
    infinite = np.isinf(bound.astype(np.longdouble))
    valid = not np.any(np.isnan(converted)) and bool(
        np.all(np.isinf(converted) == infinite)
    )
    converted[converted == -np.inf] = low
    converted[converted == np.inf] = high
    return converted, valid
