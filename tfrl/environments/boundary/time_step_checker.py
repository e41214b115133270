"""`TimeStepChecker` checks every time step of an environment against its specs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.environments.boundary import leaf_checks
from tfrl.specs import array_spec, bounds, matching
from tfrl.trajectories import time_step as ts

# Bounds are checked at each of the first steps, and later once in a period of steps,
# because this check takes as long as all others together.
_ALWAYS, _PERIOD = 1000, 16
_LAST = int(ts.StepType.LAST)


class TimeStepChecker:
    """Checks time steps and flattens them, with a batch dimension in front.

    Observations must have the structure, shapes and dtypes of the specs. Python
    numbers, rewards and discounts are cast. Numbers must be finite in float32, because
    networks compute in it, and one NaN or infinity in a replay buffer spoils every
    batch that contains it. There is one warning, about the first number outside of the
    bounds of its spec. After a thousand steps, only every 16th step is checked for
    bounds.
    """

    def __init__(self, name: str, spec: ts.TimeStep, batch_size: int | None = None):
        """Prepares the checks; `of` makes a checker for an environment.

        Args:
          name: The name of the environment, for messages.
          spec: The `TimeStep` of array specs, without the batch.
          batch_size: The size of the batch. With None, time steps have no batch
            dimension, and get one of size 1.
        """
        self._name = name
        self._observation_spec = spec.observation
        self._reward_spec = spec.reward
        self._spec = spec
        outer = () if batch_size is None else (batch_size,)
        self._is_batched = batch_size is not None
        # For each array that has bounds, by its index in the flat result.
        self._bounds_checks = _bounds_checks(spec)

        def make_checks(field: str, rule: leaf_checks.CastRule) -> list[Any]:
            return [
                leaf_checks.make((field, *path), leaf, outer, rule)
                for path, leaf in tree.flatten_with_path(getattr(spec, field))
            ]

        (self._as_step_type,) = make_checks("step_type", leaf_checks.is_integer)
        (self._as_discount,) = make_checks("discount", leaf_checks.is_number)
        self._reward_checks = make_checks("reward", leaf_checks.is_number)
        self._observation_checks = make_checks("observation", leaf_checks.has_no_dtype)
        self._is_flat = all(isinstance(leaf, array_spec.ArraySpec) for leaf in spec)
        # Members seldom begin or end, and a comparison of bytes takes the least time.
        self._all_mid = np.full(outer, ts.StepType.MID).tobytes()
        # The index and the path of each floating leaf, and whether it is finite.
        self._floats = [
            (index, where, bounds.finite_test(leaf.dtype, outer + leaf.shape))
            for index, (where, leaf) in enumerate(_paths(spec))
            if array_spec.is_continuous(leaf)
        ]

    @classmethod
    def of(cls, environment: py_environment.PyEnvironment) -> Self:
        """Returns the checker for an environment, batched or not."""
        return cls(
            py_environment.environment_name(environment),
            environment.time_step_spec(),
            environment.batch_size if environment.batched else None,
        )

    def __call__(self, time_step: ts.TimeStep, step: int) -> list[np.ndarray]:
        """Returns copies of the arrays of `time_step`, flat, each `[B, ...]`.

        Args:
          time_step: The time step that the environment returned.
          step: The number of the step, for the message.

        Raises:
          ValueError: If the time step does not match its spec. The message names the
            environment, the field and the step.
        """
        flat = [leaf.copy() for leaf in self._checked_leaves(time_step, step)]
        return flat if self._is_batched else [leaf[np.newaxis] for leaf in flat]

    def conform(self, time_step: ts.TimeStep, step: int | None = None) -> ts.TimeStep:
        """Returns `time_step` with arrays of the specs' dtypes, copied only if cast.

        Args:
          time_step: See `__call__`.
          step: See `__call__`; None if it is not known.

        Raises:
          ValueError: See `__call__`.
        """
        leaves = self._checked_leaves(time_step, step)
        if self._is_flat:
            return ts.TimeStep(*leaves)
        return tree.unflatten_as(self._spec, leaves)

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
          finite_checks: Functions that check whether floats in `arrays` are finite.
            Together they cover all floats. If numbers are adjacent in memory, one
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
            if arrays[0].tobytes() != self._all_mid:
                _check_step_type(arrays[0])
            for is_finite in finite_checks:
                if not is_finite():
                    self._check_finite(self._leaves(time_step))
        except (leaf_checks.BrokenSpecError, AttributeError) as error:
            mended = self._mended(time_step, step, error)
            self.write(mended, step, arrays, finite_checks)
            return
        if step < _ALWAYS or step % _PERIOD == 0:
            self._check_bounds(arrays, step)

    def _write_flat(self, time_step: ts.TimeStep, arrays: Sequence[np.ndarray]) -> None:
        """Writes a time step of four arrays, without the lists that nests need."""
        step_type, reward, discount, observation = arrays
        step_type[...] = self._as_step_type(time_step.step_type)
        reward[...] = self._reward_checks[0](time_step.reward)
        discount[...] = self._as_discount(time_step.discount)
        observation[...] = self._observation_checks[0](time_step.observation)

    def _checked_leaves(
        self, time_step: ts.TimeStep, step: int | None
    ) -> list[np.ndarray]:
        """Returns the leaves after all checks, not copied."""
        try:
            leaves = self._leaves(time_step)
            if leaves[0].tobytes() != self._all_mid:
                _check_step_type(leaves[0])
            self._check_finite(leaves)
        except (leaf_checks.BrokenSpecError, AttributeError) as error:
            return self._checked_leaves(self._mended(time_step, step, error), step)
        if step is not None and (step < _ALWAYS or step % _PERIOD == 0):
            self._check_bounds(leaves, step)
        return leaves

    def _mended(
        self,
        time_step: Any,
        step: int | None,
        error: leaf_checks.BrokenSpecError | AttributeError,
    ) -> ts.TimeStep:
        """Returns a time step without a batch of one; raises an error for any other."""
        if isinstance(error, AttributeError):
            if all(hasattr(time_step, field) for field in ts.TimeStep._fields):
                raise error
            raise ValueError(
                f"time_step: got a {type(time_step).__name__} from "
                f"{self._source(step)}, expected a TimeStep; return ts.restart, "
                "ts.transition, ts.termination or ts.truncation."
            ) from None
        if not self._is_batched and np.shape(time_step.step_type) == (1,):
            return _without_batch(time_step)
        raise ValueError(
            f"{error.where}: got {error.problem} from {self._source(step)}; correct "
            "the environment, or its spec."
        ) from None

    def _source(self, step: int | None) -> str:
        at = "" if step is None else f" at step {step}"
        return f"environment {self._name}{at}"

    def _check_finite(self, leaves: Sequence[np.ndarray]) -> None:
        for index, where, is_finite in self._floats:
            if not is_finite(leaves[index]):
                raise leaf_checks.not_finite(where, leaves[index])

    def _leaves(self, time_step: ts.TimeStep) -> list[np.ndarray]:
        """Returns the leaves with the structure, shapes and dtypes of the spec."""
        if self._is_flat:
            return [
                self._as_step_type(time_step.step_type),
                self._reward_checks[0](time_step.reward),
                self._as_discount(time_step.discount),
                self._observation_checks[0](time_step.observation),
            ]
        return [
            self._as_step_type(time_step.step_type),
            *leaf_checks.flatten(
                "reward", time_step.reward, self._reward_spec, self._reward_checks
            ),
            self._as_discount(time_step.discount),
            *leaf_checks.flatten(
                "observation",
                time_step.observation,
                self._observation_spec,
                self._observation_checks,
            ),
        ]

    def _check_bounds(self, flat: Sequence[np.ndarray], step: int) -> None:
        """Warns of the first number out of bounds, and then stops checking bounds."""
        for index, (where, spec, leaves_bounds) in self._bounds_checks.items():
            if leaves_bounds(flat[index]):
                self._bounds_checks = {}
                value = flat[index]
                if not self._is_batched and value.ndim > len(spec.shape):
                    value = value[0]
                warnings.warn(
                    f"{where}: {matching.outlier(value, spec)}, from environment "
                    f"{self._name} at step {step}; correct the bounds in its spec (or "
                    "its Box), or clip the numbers in a wrapper. Later numbers out "
                    "of bounds cause no warning.",
                    RuntimeWarning,
                    stacklevel=3,
                )
                return


def _without_batch(time_step: ts.TimeStep) -> ts.TimeStep:
    """Takes a batch of one from all but the observation.

    `ts.termination` makes such a time step from an observation and a reward of shape
    `(1,)`, and an environment for TF-Agents may return it.
    """
    step_type, reward, discount, observation = time_step
    rest = tree.map_structure(np.ravel, (step_type, reward, discount))
    step_type, reward, discount = tree.map_structure(lambda x: x[0], rest)
    return ts.TimeStep(step_type, reward, discount, observation)


def _check_step_type(array: np.ndarray) -> None:
    wrong = array[(array < 0) | (array > _LAST)]
    if wrong.size:
        raise leaf_checks.BrokenSpecError(
            "step_type", f"{wrong[0]}, expected 0 (FIRST), 1 (MID) or 2 (LAST),"
        )


def _paths(spec: ts.TimeStep) -> list[tuple[str, Any]]:
    """Returns the path and the spec of each leaf, in flat order."""
    fields = ("step_type", "reward", "discount", "observation")
    return [
        (matching.join(field, *path), leaf)
        for field in fields
        for path, leaf in tree.flatten_with_path(getattr(spec, field))
    ]


def _bounds_checks(
    spec: ts.TimeStep,
) -> dict[int, tuple[str, Any, Callable[[np.ndarray], Any]]]:
    """Returns the path, the spec and the check of each array that has bounds."""
    return {
        index: (where, leaf, check)
        for index, (where, leaf) in enumerate(_paths(spec))
        if (check := _make_bounds_check(leaf)) is not None
    }


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
