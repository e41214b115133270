"""Checks one array against its spec, for time steps and for actions.

All places at which arrays enter or leave an environment use these checks:
`TimeStepChecker` and `ActionChecker` for whole nests, and `NestCopier` for the results
of other libraries' environments.
"""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tree

from tfrl.specs import array_spec, bounds, matching

LeafCheck = Callable[[Any], np.ndarray]
# Takes a value, the value as an array, and a dtype; returns whether the value may be
# cast to the dtype.
CastRule = Callable[[Any, np.ndarray, np.dtype[Any]], bool]


class BrokenSpecError(Exception):
    """A value does not match its spec.

    Attributes:
      where: The path of the value in its nest.
      problem: The given and the expected value, as text that ends with a comma.
    """

    def __init__(self, where: str, problem: str):
        """Makes the error; for the arguments see the attributes."""
        super().__init__(where, problem)
        self.where = where
        self.problem = problem


class WrongDtypeError(BrokenSpecError):
    """A value's dtype differs from its spec's, and the value cannot be cast."""


def make(
    path: Sequence[Any],
    spec: array_spec.ArraySpec,
    outer: tuple[int, ...],
    may_cast: CastRule,
    *,
    must_be_finite: bool = False,
    takes_number: bool = False,
) -> LeafCheck:
    """Returns a function that checks one leaf's dtype and shape.

    The function returns the leaf as an array of its spec's dtype, the same array if it
    has this dtype.

    Args:
      path: The path of the leaf in its nest, for messages.
      spec: The spec of the leaf.
      outer: The dimensions in front of the spec's shape, such as `(B,)`.
      may_cast: A function that returns whether a value may be cast to the spec's dtype.
      must_be_finite: Whether the function also looks for NaN and infinity.
      takes_number: Whether a number stands for an array `[1]` of it.
    """
    shape = outer + spec.shape
    is_finite = None
    if must_be_finite and array_spec.is_continuous(spec):
        is_finite = bounds.finite_test(spec.dtype, shape)
    # Unlike a closure, a partial can be pickled with the environment that holds it.
    where = matching.join(*path)
    return functools.partial(
        _check, where, spec.dtype, shape, may_cast, is_finite, takes_number
    )


def flatten(
    field: str, value: Any, spec: Any, checks: Sequence[LeafCheck]
) -> list[np.ndarray]:
    """Returns the checked leaves of `value`, one for each leaf of `spec`.

    Raises:
      BrokenSpecError: If the structure differs, or a leaf breaks its spec.
    """
    if isinstance(spec, array_spec.ArraySpec):
        return [checks[0](value)]
    return [
        check(leaf)
        for check, leaf in zip(checks, leaves(field, value, spec), strict=True)
    ]


def leaves(field: str, value: Any, spec: Any) -> list[Any]:
    """Returns the leaves of `value`, one for each leaf of `spec`, unchecked.

    Raises:
      BrokenSpecError: If the structure differs.
    """
    try:
        return tree.flatten_up_to(spec, value)
    except (TypeError, ValueError) as error:
        raise BrokenSpecError(
            field,
            f"{reprlib.repr(value)}, another structure than the expected one, {spec} "
            f"({error}),",
        ) from None


def copy_as(where: str, value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Copies a value of another library's environment to an array of `dtype`.

    Raises:
      BrokenSpecError: If `dtype` cannot hold the value: a complex number, text, None,
        or, for an integer dtype, a fraction or an integer out of its range.
    """
    if type(value) is np.ndarray and value.dtype == dtype:
        return value.copy()
    return np.array(_as_dtype(where, value, dtype, holds))


def not_finite(where: str, array: np.ndarray) -> BrokenSpecError:
    """Returns the error for an array with a number that is not finite in float32."""
    what = bounds.describe_not_finite_in_float32(array)
    return BrokenSpecError(where, f"{what}, expected a finite number,")


def keeps_kind(value: Any, array: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """The rule for actions: no fraction becomes an integer, and all integers fit."""
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        return bounds.keeps_values(array, dtype)
    return is_number(value, array, dtype) and np.can_cast(
        array.dtype, dtype, "same_kind"
    )


def is_integer(value: Any, array: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """The rule for step types: integers are cast if they fit."""
    return array.dtype.kind in "iu" and keeps_kind(value, array, dtype)


def has_no_dtype(value: Any, array: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """The rule for observations: only Python's numbers and lists are cast."""
    return not hasattr(value, "dtype") and keeps_kind(value, array, dtype)


def is_number(value: Any, array: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """The rule for rewards and discounts: all real numbers are cast."""
    del value
    return array.dtype.kind in ("b", "i", "u", "f", dtype.kind)


def holds(value: Any, array: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """The rule for other libraries: a number is cast if `dtype` can hold it."""
    del value
    if array.dtype.kind not in "biuf":
        return array.dtype.kind == dtype.kind
    return dtype.kind not in "biu" or bounds.keeps_values(array, dtype)


def _check(
    where: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    may_cast: CastRule,
    is_finite: Callable[[np.ndarray], bool] | None,
    takes_number: bool,
    value: Any,
) -> np.ndarray:
    if type(value) is not np.ndarray or value.dtype != dtype:
        value = _as_dtype(where, value, dtype, may_cast)
    if value.shape != shape and not matching.fits(value.shape, shape):
        if not (takes_number and value.shape == () and shape == (1,)):
            raise BrokenSpecError(where, f"shape {value.shape}, expected {shape},")
        value = value[np.newaxis]
    if is_finite is not None and not is_finite(value):
        raise not_finite(where, value)
    return value


def _as_dtype(
    where: str, value: Any, dtype: np.dtype[Any], may_cast: CastRule
) -> np.ndarray:
    """Returns `value` as an array of `dtype`, if that is allowed."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise BrokenSpecError(
            where, f"{value!r}, expected an array of dtype {dtype} ({error}),"
        ) from None
    if array.dtype == dtype:
        return array
    if may_cast(value, array, dtype):
        # Before the cast, which would turn a large number into infinity.
        if array.dtype.kind == "f" and not bounds.is_finite_in_float32(array):
            raise not_finite(where, array)
        return array.astype(dtype)
    raise WrongDtypeError(
        where, f"{_describe(value, array, dtype)}, expected an array of dtype {dtype},"
    )


def _describe(value: Any, array: np.ndarray, dtype: np.dtype[Any]) -> str:
    """Describes a value that is not cast, with a number that `dtype` cannot hold."""
    if value is None:
        return "None"
    if array.dtype == np.object_:
        objects = " of Python objects" if array.shape else ""
        return f"a {type(value).__name__}{objects}"
    got = f"dtype {array.dtype}"
    if array.dtype.kind in "iuf" and dtype.kind in "iu":
        with np.errstate(invalid="ignore"):
            lost = array[array.astype(dtype) != array]
        return f"{got} with {lost[0]}" if lost.size else got
    return got


class NestCopier:
    """Copies one field of a time step, such as its observation.

    A copy is necessary, because an environment may change its arrays in place, and the
    caller keeps the result. A number is cast to the dtype of its spec if this dtype can
    hold it. Shapes, NaN and infinity are left to the check of the whole time step.
    """

    def __init__(self, name: str, field: str, spec: Any):
        """Prepares the copies.

        Args:
          name: The name of the environment, for messages.
          field: The name of the field, such as "observation".
          spec: The nest of `ArraySpec`s of the field.
        """
        self._name = name
        self._field = field
        self._spec = spec
        self._leaves = [
            (matching.join(field, *path), leaf.dtype)
            for path, leaf in tree.flatten_with_path(spec)
        ]
        # The dtype of a single array; None for a nest.
        self._dtype = spec.dtype if isinstance(spec, array_spec.ArraySpec) else None

    def __call__(self, value: Any) -> Any:
        """Returns copies of the arrays in `value`, as a nest like the spec.

        Raises:
          ValueError: If the structure differs, or a dtype cannot hold a number; the
            message names the environment and the field.
        """
        if type(value) is np.ndarray and value.dtype is self._dtype:
            return value.copy()
        try:
            if self._dtype is not None:
                return copy_as(self._field, value, self._dtype)
            values = leaves(self._field, value, self._spec)
            copies = [
                copy_as(where, leaf, dtype)
                for leaf, (where, dtype) in zip(values, self._leaves, strict=True)
            ]
        except BrokenSpecError as error:
            raise ValueError(
                f"{error.where}: got {error.problem} from environment {self._name}; "
                "correct the results of its reset and its step, or its spec (its "
                "space)."
            ) from None
        return tree.unflatten_as(self._spec, copies)
