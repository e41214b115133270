"""`TimeStepChecker`: checks every time step of an environment against its specs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.specs import array_spec, bounds
from tfrl.trajectories import time_step as ts

# Bounds are checked at each of the first steps, and later at each step of a period,
# because the check takes as long as all others.
_ALWAYS, _PERIOD = 1000, 16


class TimeStepChecker:
    """Checks time steps and flattens them, with a batch dimension in front.

    Observations must have the structure, shapes and dtypes of the specs.
    Python numbers, rewards and discounts are cast. Numbers must be finite in float32,
    because networks compute in it, and one NaN or infinity in a replay buffer spoils
    every batch that contains it. The first number that leaves the bounds of its spec
    makes one warning; after a thousand steps, every 16th step is checked for that.
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
        self._is_batched = environment.batched
        # For each array that has bounds, by its index in the flat result.
        self._bounds_checks = _bounds_checks(spec)

        def make_checks(field: str, leaves: Any, cast: bool) -> list[_LeafCheck]:
            return [
                _make_leaf_check((field, *path), leaf, outer, cast)
                for path, leaf in tree.flatten_with_path(leaves)
            ]

        (self._as_step_type,) = make_checks("step_type", spec.step_type, True)
        (self._as_discount,) = make_checks("discount", spec.discount, True)
        self._reward_checks = make_checks("reward", spec.reward, True)
        self._observation_checks = make_checks("observation", spec.observation, False)
        self._is_flat = all(isinstance(leaf, array_spec.ArraySpec) for leaf in spec)
        # The index and the path of each floating leaf.
        self._floats = [
            (index, where)
            for index, (where, leaf) in enumerate(_paths(spec))
            if array_spec.is_continuous(leaf)
        ]

    def __call__(self, time_step: ts.TimeStep, step: int) -> list[np.ndarray]:
        """Returns copies of the arrays of `time_step`, flat, each `[B, ...]`.

        Args:
          time_step: The time step that the environment returned.
          step: The number of the step, for the message.

        Raises:
          ValueError: If the time step breaks its spec; it names environment, field and
            step.
        """
        try:
            leaves = self._leaves(time_step)
            self._check_finite(leaves)
        except _BrokenSpecError as error:
            raise self._explain(error, step) from None
        flat = [leaf.copy() for leaf in leaves]
        if not self._is_batched:
            flat = [leaf[np.newaxis] for leaf in flat]
        self._check_bounds(flat, step)
        return flat

    def write(
        self,
        time_step: ts.TimeStep,
        step: int,
        arrays: Sequence[np.ndarray],
        finite_checks: Sequence[Callable[[], bool]],
    ) -> None:
        """Writes the arrays of `time_step` to `arrays`, and checks them there.

        Args:
          time_step: See `__call__`.
          step: See `__call__`.
          arrays: An array `[B, ...]` of the spec's shape and dtype for each leaf.
          finite_checks: Functions that say whether the floating numbers of `arrays` are
            finite, all of these together. Where numbers are adjacent in memory, one
            function for several leaves takes less time.

        Raises:
          ValueError: See `__call__`. The contents of `arrays` are undefined then.
        """
        try:
            if self._is_flat:
                self._write_flat(time_step, arrays)
            else:
                for array, leaf in zip(arrays, self._leaves(time_step), strict=True):
                    array[...] = leaf
            for is_finite in finite_checks:
                if not is_finite():
                    self._check_finite(self._leaves(time_step))
        except _BrokenSpecError as error:
            raise self._explain(error, step) from None
        if step < _ALWAYS or step % _PERIOD == 0:
            self._check_bounds(arrays, step)

    def _write_flat(self, time_step: ts.TimeStep, arrays: Sequence[np.ndarray]) -> None:
        """Writes a time step of four arrays, without the lists that nests take."""
        step_type, reward, discount, observation = arrays
        step_type[...] = self._as_step_type(time_step.step_type)
        reward[...] = self._reward_checks[0](time_step.reward)
        discount[...] = self._as_discount(time_step.discount)
        observation[...] = self._observation_checks[0](time_step.observation)

    def _explain(self, error: _BrokenSpecError, step: int) -> ValueError:
        return ValueError(
            f"{error.where}: got {error.problem} from environment {self._name} at "
            f"step {step}; mend the environment, or its spec."
        )

    def _check_finite(self, leaves: Sequence[np.ndarray]) -> None:
        for index, where in self._floats:
            if not bounds.is_finite_in_float32(leaves[index]):
                raise _not_finite(where, leaves[index])

    def _leaves(self, time_step: ts.TimeStep) -> list[np.ndarray]:
        """Returns the leaves with the structure, shapes and dtypes of the spec."""
        return [
            self._as_step_type(time_step.step_type),
            *_flatten(
                "reward", time_step.reward, self._reward_spec, self._reward_checks
            ),
            self._as_discount(time_step.discount),
            *_flatten(
                "observation",
                time_step.observation,
                self._observation_spec,
                self._observation_checks,
            ),
        ]

    def _check_bounds(self, flat: Sequence[np.ndarray], step: int) -> None:
        """Warns of the first number out of bounds, and checks no later ones."""
        if not self._bounds_checks or (step >= _ALWAYS and step % _PERIOD):
            return
        for index, (where, spec, leaves_bounds) in self._bounds_checks.items():
            if leaves_bounds(flat[index]):
                self._bounds_checks = {}
                value = flat[index] if self._is_batched else flat[index][0]
                warnings.warn(
                    f"{_describe_outlier(where, value, spec)} from environment "
                    f"{self._name} at step {step}; mend the bounds in its spec (or its "
                    "Box), or clip the numbers in a wrapper. There is no warning about "
                    "later ones.",
                    RuntimeWarning,
                    stacklevel=3,
                )
                return

    @property
    def environment_name(self) -> str:
        """The environment's name; see the function of this name."""
        return self._name


def environment_name(environment: Any) -> str:
    """Returns the environment's name for messages: its registered id, or its class.

    It is the class inside of all wrappers; for a batch, the first member's class.
    """
    name = getattr(getattr(environment, "spec", None), "id", None)
    if isinstance(name, str):
        return name
    # Only a PyEnvironment is unwrapped, because mocks have every attribute.
    while isinstance(environment, py_environment.PyEnvironment) and hasattr(
        environment, "wrapped_env"
    ):
        environment = environment.wrapped_env()
    if hasattr(type(environment), "gym"):
        environment = environment.gym
    if isinstance(environment, gymnasium.Env | gymnasium.vector.VectorEnv):
        environment = environment.unwrapped
    members = getattr(environment, "envs", None)
    if isinstance(members, list | tuple) and members:
        return f"{type(environment).__name__} of {environment_name(members[0])}"
    return type(environment).__name__


class _BrokenSpecError(Exception):
    """The leaf at `where` does not match its spec."""

    def __init__(self, where: str, problem: str):
        super().__init__(where, problem)
        self.where = where
        self.problem = problem


_LeafCheck = Callable[[Any], np.ndarray]


def _flatten(
    field: str, value: Any, spec: Any, checks: Sequence[_LeafCheck]
) -> list[np.ndarray]:
    if isinstance(spec, array_spec.ArraySpec):
        return [checks[0](value)]
    try:
        leaves = tree.flatten_up_to(spec, value)
    except (TypeError, ValueError) as error:
        raise _BrokenSpecError(
            field, f"another structure than the spec {spec} ({error})"
        ) from None
    return [check(leaf) for check, leaf in zip(checks, leaves, strict=True)]


def _make_leaf_check(
    path: tuple[Any, ...],
    spec: array_spec.ArraySpec,
    outer: tuple[int, ...],
    cast: bool,
) -> _LeafCheck:
    """Returns a function that checks one leaf's shape and casts it to its dtype."""
    where = "/".join(map(str, path))
    dtype = spec.dtype
    shape = outer + spec.shape

    def check(value: Any) -> np.ndarray:
        if type(value) is not np.ndarray or value.dtype != dtype:
            value = _coerce(where, value, dtype, cast)
        if value.shape != shape:
            _check_shape(where, value.shape, shape)
        return value

    return check


def _paths(spec: ts.TimeStep) -> list[tuple[str, Any]]:
    """Returns the path and the spec of each leaf, in flat order."""
    fields = ("step_type", "reward", "discount", "observation")
    return [
        ("/".join(map(str, (field, *path))), leaf)
        for field in fields
        for path, leaf in tree.flatten_with_path(getattr(spec, field))
    ]


def _bounds_checks(
    spec: ts.TimeStep,
) -> dict[int, tuple[str, Any, Callable[[np.ndarray], Any]]]:
    """Returns the path, the spec and the check of each array that has bounds."""
    found = {}
    for index, (where, leaf) in enumerate(_paths(spec)):
        check = _make_bounds_check(leaf)
        if check is not None:
            found[index] = where, leaf, check
    return found


def _make_bounds_check(spec: Any) -> Callable[[np.ndarray], Any] | None:
    """Returns a function that looks for numbers out of bounds; None without bounds.

    A bound at the limit of its dtype counts as no bound.
    """
    if not array_spec.is_bounded(spec) or spec.dtype.kind not in "iuf":
        return None
    least, greatest = bounds.dtype_limits(spec.dtype)
    low, high = spec.minimum, spec.maximum
    if np.all(low == least) and np.all(high == greatest):
        return None
    # Counting takes a fraction of the time of np.any.
    count = np.count_nonzero
    return lambda value: count(value < low) or count(value > high)


def _describe_outlier(where: str, value: np.ndarray, spec: Any) -> str:
    low, high = (
        np.broadcast_to(bound, value.shape) for bound in (spec.minimum, spec.maximum)
    )
    index = tuple(np.argwhere((value < low) | (value > high))[0])
    at = f" at index {list(map(int, index))}" if index else ""
    return (
        f"{where}: got {value[index]}{at}, expected a number in "
        f"[{low[index]}, {high[index]}], the bounds of its spec,"
    )


def _not_finite(where: str, value: np.ndarray) -> _BrokenSpecError:
    """Returns the error for an array with a number that is not finite in float32."""
    what = bounds.describe_not_finite_in_float32(value)
    return _BrokenSpecError(where, f"{what}, expected a finite number,")


def _coerce(where: str, value: Any, dtype: np.dtype[Any], cast: bool) -> np.ndarray:
    """Returns `value` as an array of `dtype`, if that is allowed."""
    try:
        array = np.asarray(value)
        if array.dtype == dtype:
            return array
        # A value that has a dtype must have the spec's.
        castable = array.dtype.kind in ("b", "i", "u", "f", dtype.kind)
        if castable and (
            cast or (not hasattr(value, "dtype") and _holds(array, dtype))
        ):
            if array.dtype.kind == "f" and not bounds.is_finite_in_float32(array):
                # Before the cast, which would turn a large number into infinity.
                raise _not_finite(where, array)
            return array.astype(dtype)
    except (TypeError, ValueError) as error:
        raise _BrokenSpecError(
            where, f"{value!r}, expected an array of dtype {dtype} ({error}),"
        ) from None
    got = f"dtype {array.dtype}"
    if array.dtype == np.object_:
        got = f"a {type(value).__name__}"
    raise _BrokenSpecError(where, f"{got}, expected an array of dtype {dtype},")


def _holds(array: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """Whether `array` can be cast to `dtype`, without loss if it holds integers."""
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        return bool(np.all(array.astype(dtype) == array))
    return np.can_cast(array.dtype, dtype, "same_kind")


def _check_shape(where: str, got: tuple[int, ...], expected: tuple[Any, ...]) -> None:
    if len(got) == len(expected) and all(
        wanted is None or wanted == size
        for size, wanted in zip(got, expected, strict=True)
    ):
        return
    raise _BrokenSpecError(where, f"shape {got}, expected {expected},")
