"""Compares an array or a tensor with its spec: the dtype, the shape, the bounds.

Environments, policies, networks and replay buffers check their inputs with `check`, so
that their errors are the same. A spec is an `ArraySpec` or a `tf.TensorSpec`; this
module does not import TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tree

Outer = Sequence[int | None] | None


def check(
    where: str,
    value: Any,
    spec: Any,
    outer: Outer = (),
    *,
    remedy: str,
    dtype_error: type[Exception] = ValueError,
) -> None:
    """Raises an error unless a value has the dtype and the shape of its spec.

    Args:
      where: The argument and the path of the value in it, for the message.
      value: An array, a tensor or a spec.
      spec: An array spec or a tensor spec.
      outer: See `fits`.
      remedy: The end of the message, without a full stop.
      dtype_error: The kind of the error for another dtype.

    Raises:
      ValueError: If the shape differs; if the dtype differs, a `dtype_error`. The
        message has the given and the expected one.
    """
    if not same_dtype(value.dtype, spec.dtype):
        raise dtype_error(
            f"{where}: got dtype {_name(value.dtype)}, expected {_name(spec.dtype)}; "
            f"{remedy}."
        )
    if not fits(value.shape, spec.shape, outer):
        raise ValueError(
            f"{where}: got shape {_text(value.shape)}, expected "
            f"{_text(spec.shape, outer)}; {remedy}."
        )


def check_bounds(where: str, value: Any, spec: Any, *, remedy: str) -> None:
    """Raises a ValueError if a number of an array is out of the bounds of its spec.

    Args:
      where: See `check`.
      value: An array `[..., *spec.shape]`.
      spec: A bounded array spec or tensor spec.
      remedy: See `check`.
    """
    problem = outlier(value, spec)
    if problem is not None:
        raise ValueError(f"{where}: {problem}; {remedy}.")


def outlier(value: Any, spec: Any) -> str | None:
    """Describes the first number out of the bounds of a spec; None if there is none."""
    low, high = (
        np.broadcast_to(bound, value.shape) for bound in (spec.minimum, spec.maximum)
    )
    wrong = np.argwhere(~((value >= low) & (value <= high)))  # NaN, too.
    if not len(wrong):
        return None
    index = tuple(wrong[0])
    at = f" at index {list(map(int, index))}" if index else ""
    return (
        f"got {value[index]}{at}, expected a number in [{low[index]}, {high[index]}], "
        "the bounds of its spec"
    )


def matches(value: Any, spec: Any, outer: Outer = ()) -> bool:
    """Whether a value has the dtype and the shape of its spec; see `check`."""
    return same_dtype(value.dtype, spec.dtype) and fits(value.shape, spec.shape, outer)


def same_dtype(one: Any, other: Any) -> bool:
    """Whether two dtypes, of NumPy or TensorFlow, are the same."""
    return one is other or _numpy_dtype(one) == _numpy_dtype(other)


def fits(shape: Any, inner: Any, outer: Outer = ()) -> bool:
    """Whether `shape` is `inner`, the shape of a spec, behind outer dimensions.

    A dimension or a rank that is not known fits any.

    Args:
      shape: A tuple or a `tf.TensorShape`.
      inner: The shape of the spec, in the same form.
      outer: The outer dimensions, `(B,)` for a batch. An entry None stands for any
        length, and None for outer dimensions of any number.
    """
    given, wanted = _dims(shape), _dims(inner)
    if given is None or wanted is None:
        return True
    if outer is None:
        outer = given[: len(given) - len(wanted)]
    wanted = (*outer, *wanted)
    return given == wanted or (
        len(given) == len(wanted)
        and all(
            size == other or size is None or other is None
            for size, other in zip(given, wanted, strict=True)
        )
    )


def cast(array: Any, spec: Any) -> Any:
    """Casts an array to the spec's dtype where NumPy's "same_kind" rule allows that.

    Otherwise, as from float64 to int32, it returns the same array.
    """
    dtype = _numpy_dtype(spec.dtype)
    if np.can_cast(array.dtype, dtype, "same_kind"):
        return array.astype(dtype, copy=False)
    return array


def join(*path: Any) -> str:
    """Returns the place of a leaf as text, such as "observation/position"."""
    return "/".join(map(str, path))


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    return np.dtype(getattr(dtype, "as_numpy_dtype", dtype))


def _name(dtype: Any) -> str:
    return getattr(dtype, "name", None) or str(np.dtype(dtype))


def _dims(shape: Any) -> tuple[int | None, ...] | None:
    """Returns the dimensions as a tuple; None if even their number is not known."""
    if type(shape) is tuple:
        return shape
    return None if getattr(shape, "rank", 0) is None else tuple(shape)


def _text(shape: Any, outer: Outer = ()) -> str:
    dims = _dims(shape)
    if outer is None or dims is None:
        return f"({', '.join(map(str, ('...', *(dims or ()))))})"
    return str((*outer, *dims))


def check_not_empty(specs: Any, argument: str) -> None:
    """Checks that no array has an axis of length 0.

    TensorFlow's matrix products end the process if they get such an array.

    Args:
      specs: A nest of array specs or tensor specs; other leaves are not checked.
      argument: The name of the nest, for the message.

    Raises:
      ValueError: If there is such a spec; the message has its path and its shape.
    """
    for path, spec in tree.flatten_with_path(specs):
        shape = _shape_of(spec)
        if 0 in shape:
            where = "/".join([argument, *map(str, path)])
            raise ValueError(
                f"{where}: got the shape {shape}, an array without elements, expected "
                "at least one element in each axis; correct the space or spec of the "
                "environment, or leave this part out of it with a wrapper."
            )


def _shape_of(spec: Any) -> tuple[Any, ...]:
    shape = getattr(spec, "shape", ())
    # A tf.TensorShape of unknown rank has no axes to look at.
    return () if getattr(shape, "rank", 0) is None else tuple(shape)
