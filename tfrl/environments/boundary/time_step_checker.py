"""`TimeStepChecker`: checks every time step of an environment against its specs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts

# An array whose sum of squares is finite is finite; np.isfinite takes twice as long.
_SUMMABLE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class TimeStepChecker:
    """Checks a time step and flattens it into new arrays, each `[B, ...]`.

    The structure, shapes and dtypes of observations must equal those of the specs.
    Python numbers, rewards and discounts are cast. NaN is refused, and so is an
    infinity beyond a bound of the spec.
    """

    def __init__(self, environment: py_environment.PyEnvironment):
        """Prepares the checks.

        Args:
          environment: The environment whose specs to check against; it may be
            unbatched, and its time steps then get a batch dimension of 1.
        """
        spec = environment.time_step_spec()
        batch_size = environment.batch_size if environment.batched else None
        self._name = environment_name(environment)
        self._observation_spec = spec.observation
        self._reward_spec = spec.reward
        outer = () if batch_size is None else (batch_size,)
        self._as_step_type = _make_leaf_check((), spec.step_type, outer, cast=True)
        self._as_discount = _make_leaf_check((), spec.discount, outer, cast=True)
        self._reward_checks = _make_checks(spec.reward, outer, cast=True)
        self._observation_checks = _make_checks(spec.observation, outer, cast=False)

    def __call__(self, time_step: ts.TimeStep, step: int) -> list[np.ndarray]:
        """Returns copies of the arrays of `time_step`, flat.

        Args:
          time_step: The time step that the environment returned.
          step: The number of the step, for the message.

        Raises:
          ValueError: If the time step breaks its spec; it names environment, field and
            step.
        """
        field = "step_type"
        try:
            flat = [self._as_step_type(time_step.step_type)]
            field = "reward"
            flat += _flatten(time_step.reward, self._reward_spec, self._reward_checks)
            field = "discount"
            flat.append(self._as_discount(time_step.discount))
            field = "observation"
            flat += _flatten(
                time_step.observation, self._observation_spec, self._observation_checks
            )
        except _BrokenSpecError as error:
            where = "/".join((field, *map(str, error.path)))
            raise ValueError(
                f"{where}: got {error.problem} from environment {self._name} at step "
                f"{step}; mend the environment, or its spec."
            ) from None
        return flat


def environment_name(environment: Any) -> str:
    """Returns the environment's name for messages: its registered id, or its class."""
    name = getattr(getattr(environment, "spec", None), "id", None)
    if isinstance(name, str):
        return name
    # Only a PyEnvironment is unwrapped, because mocks have every attribute.
    while isinstance(environment, py_environment.PyEnvironment) and hasattr(
        environment, "wrapped_env"
    ):
        environment = environment.wrapped_env()
    return type(environment).__name__


class _BrokenSpecError(Exception):
    """The leaf at `path` does not match its spec."""

    def __init__(self, path: tuple[Any, ...], problem: str):
        super().__init__(path, problem)
        self.path = path
        self.problem = problem


_LeafCheck = Callable[[Any], np.ndarray]


def _make_checks(spec: Any, outer: tuple[int, ...], cast: bool) -> list[_LeafCheck]:
    return [
        _make_leaf_check(path, leaf, outer, cast)
        for path, leaf in tree.flatten_with_path(spec)
    ]


def _flatten(value: Any, spec: Any, checks: Sequence[_LeafCheck]) -> list[np.ndarray]:
    if isinstance(spec, array_spec.ArraySpec):
        return [checks[0](value)]
    try:
        leaves = tree.flatten_up_to(spec, value)
    except (TypeError, ValueError) as error:
        raise _BrokenSpecError(
            (), f"another structure than that of the spec {spec} ({error})"
        ) from None
    return [check(leaf) for check, leaf in zip(checks, leaves, strict=True)]


def _make_leaf_check(
    path: tuple[Any, ...],
    spec: array_spec.ArraySpec,
    outer: tuple[int, ...],
    cast: bool,
) -> _LeafCheck:
    """Returns a function that checks one leaf and returns a copy, `[B, ...]`."""
    dtype = spec.dtype
    shape = outer + spec.shape
    add_batch = not outer
    is_float = array_spec.is_continuous(spec)
    summable = dtype in _SUMMABLE_DTYPES
    vdot, isfinite = np.vdot, math.isfinite

    def check(value: Any) -> np.ndarray:
        if type(value) is not np.ndarray or value.dtype != dtype:
            value = _coerce(path, value, dtype, cast)
        if value.shape != shape:
            _check_shape(path, value.shape, shape)
        if is_float and not (summable and isfinite(vdot(value, value))):
            _check_numbers(path, value, spec)
        copy = value.copy()
        return copy[np.newaxis] if add_batch else copy

    return check


def _coerce(
    path: tuple[Any, ...], value: Any, dtype: np.dtype[Any], cast: bool
) -> np.ndarray:
    """Returns `value` as an array of `dtype`, if that is allowed."""
    try:
        array = np.asarray(value)
        if array.dtype == dtype:
            return array
        # A value that has a dtype must have that of the spec.
        if cast or (not hasattr(value, "dtype") and _holds(array, dtype)):
            return array.astype(dtype)
    except (TypeError, ValueError) as error:
        raise _BrokenSpecError(
            path, f"{value!r}, expected an array of dtype {dtype} ({error}),"
        ) from None
    got = f"dtype {array.dtype}"
    if array.dtype == np.object_:
        got = f"a {type(value).__name__}"
    raise _BrokenSpecError(path, f"{got}, expected an array of dtype {dtype},")


def _holds(array: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """Whether `array` can be cast to `dtype`, without loss if it holds integers."""
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        return bool(np.all(array.astype(dtype) == array))
    return np.can_cast(array.dtype, dtype, "same_kind")


def _check_shape(
    path: tuple[Any, ...], got: tuple[int, ...], expected: tuple[Any, ...]
) -> None:
    if len(got) == len(expected) and all(
        wanted is None or wanted == size
        for size, wanted in zip(got, expected, strict=True)
    ):
        return
    raise _BrokenSpecError(path, f"shape {got}, expected {expected},")


def _check_numbers(path: tuple[Any, ...], value: np.ndarray, spec: Any) -> None:
    """Raises if `value` has a NaN, or an infinity beyond a bound of `spec`.

    A bound at the limit of its dtype counts as no bound.
    """
    bad = np.isnan(value)
    if array_spec.is_bounded(spec) and spec.dtype in _SUMMABLE_DTYPES:
        limits = np.finfo(spec.dtype)
        bad |= np.isposinf(value) & (spec.maximum < limits.max)
        bad |= np.isneginf(value) & (spec.minimum > limits.min)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        what = "NaN" if np.isnan(value[index]) else f"{value[index]}"
        at = f" at index {list(index)}" if index else ""
        raise _BrokenSpecError(path, f"{what}{at}, expected a finite number,")
