"""Wrappers that change actions: their values, their form or their number."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import tree

from tfrl.environments.boundary import action_arrays, action_specs
from tfrl.environments.boundary.action_specs import flat_spec, one_hot_spec
from tfrl.environments.py_environment import PyEnvironment, environment_name
from tfrl.environments.wrappers import base
from tfrl.specs import array_spec, matching
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks

_Arrays = list[np.ndarray]


class ActionClipWrapper(base.PyEnvironmentBaseWrapper):
    """Clips actions to the bounds of their specs before it applies them."""

    def inner_action(self, action: Any) -> Any:
        """Returns the clipped action.

        Args:
          action: An action that follows `action_spec()`, or a batch of any size.

        Raises:
          ValueError: If the action has another structure.
        """
        spec = self._env.action_spec()
        # A step of most environments; it takes half the time of the general case.
        if isinstance(spec, array_spec.ArraySpec) and isinstance(action, np.ndarray):
            return _clip(spec, action)
        clipped = [
            _clip(leaf_spec, leaf)
            for leaf_spec, leaf in zip(
                tree.flatten(spec), action_arrays.leaves(action, spec), strict=True
            )
        ]
        return tree.unflatten_as(spec, clipped)

    def _step(self, action: Any) -> ts.TimeStep:
        return self._env.step(self.inner_action(action))


class _ActionConverter(base.PyEnvironmentBaseWrapper):
    """Checks actions against its own spec and converts them for the environment.

    Subclasses set `_outer_spec`, a nest of specs, and implement `_convert`.
    """

    _outer_spec: Any

    def __init__(self, env: PyEnvironment, handle_auto_reset: bool):
        super().__init__(env, handle_auto_reset)
        self._inner_specs = tree.flatten(env.action_spec())
        self._outer_shape = base.outer_shape(env)

    def action_spec(self) -> Any:
        """The nest of specs of the actions that this wrapper takes."""
        return self._outer_spec

    @functools.cached_property
    def _check_action(self) -> action_arrays.ActionChecker:
        return action_arrays.ActionChecker.of(self)

    def inner_action(self, action: Any) -> Any:
        """Returns the action of the wrapped environment for an action of this one.

        Args:
          action: An action that follows `action_spec()`, or a batch of any size.

        Raises:
          ValueError: If the action has another structure or shape, or is out of bounds.
          TypeError: If its dtype is of another kind.
        """
        spec = self._outer_spec
        first = np.asarray(action_arrays.leaves(action, spec)[0])
        outer_shape = first.shape[
            : max(first.ndim - len(tree.flatten(spec)[0].shape), 0)
        ]
        name = environment_name(self)
        check = action_arrays.ActionChecker(name, spec, outer_shape)
        return self._pack(check(action), outer_shape)

    def _step(self, action: Any) -> ts.TimeStep:
        return self._env.step(self._pack(self._check_action(action), self._outer_shape))

    def _pack(self, flat: _Arrays, outer_shape: tuple[int, ...]) -> Any:
        inner = self._convert(flat, outer_shape)
        return tree.unflatten_as(self._env.action_spec(), inner)

    def _convert(self, flat: _Arrays, outer: tuple[int, ...]) -> _Arrays:
        """Converts flat arrays of `_outer_spec` to arrays for the environment.

        Args:
          flat: The arrays, `outer` and the shapes of their specs.
          outer: The dimensions in front of the specs' shapes.
        """
        raise NotImplementedError


class ActionDiscretizeWrapper(_ActionConverter):
    """Offers a number of evenly spaced values for each element of a continuous action.

    The discrete action is int32 and has the shape of the continuous one, except that a
    continuous action of shape `(1,)` becomes a scalar.
    """

    def __init__(
        self,
        env: PyEnvironment,
        num_actions: Any,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`, whose actions are a single array with finite bounds.

        Args:
          env: The environment.
          num_actions: The number of values of each element, at least 2: one number, or
            an array that broadcasts to the shape of the action.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          ValueError: If `env` has other actions, or `num_actions` is below 2, not an
            integer or of a shape that does not broadcast.
        """
        super().__init__(env, handle_auto_reset)
        self._bins = action_specs.divide(env.action_spec(), num_actions)
        self._outer_spec = self._bins.spec

    def _convert(self, flat: _Arrays, outer: tuple[int, ...]) -> _Arrays:
        (action,), (spec, values, offsets) = flat, self._bins
        _check_bounds(action, spec)
        indices = action.reshape(*outer, len(offsets)) + offsets
        return [values[indices].reshape(outer + self._inner_specs[0].shape)]


class ActionOffsetWrapper(_ActionConverter):
    """Shifts discrete actions so that they start at 0, as a Q-network numbers them."""

    def __init__(self, env: PyEnvironment, handle_auto_reset: bool = True):
        """Wraps `env`, whose actions are a single array of bounded integers.

        Args:
          env: The environment.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          ValueError: If `env` has other actions.
        """
        super().__init__(env, handle_auto_reset)
        spec = env.action_spec()
        if not _is_bounded_discrete(spec):
            raise _wrong_action_spec(
                spec,
                "a single BoundedArraySpec of integers, because other specs have no "
                "first action; leave ActionOffsetWrapper out",
            )
        self._offset = spec.minimum
        # The difference of two int64 numbers always fits into a uint64.
        span = spec.maximum.astype(np.uint64) - spec.minimum.astype(np.uint64)
        if np.any(span > np.uint64(np.iinfo(spec.dtype).max)):
            raise _wrong_action_spec(
                spec,
                f"no more values than {spec.dtype} can count from 0; give the actions "
                "a wider dtype, or bounds",
            )
        self._outer_spec = array_spec.BoundedArraySpec(
            spec.shape,
            spec.dtype,
            minimum=np.zeros_like(spec.minimum),
            maximum=span.astype(spec.dtype),
            name=spec.name,
        )

    def _convert(self, flat: _Arrays, outer: tuple[int, ...]) -> _Arrays:
        del outer
        return [np.asarray(flat[0] + self._offset, self._offset.dtype)]


class FlattenActionWrapper(_ActionConverter):
    """Takes one flat vector `[N]` instead of a nest of actions of any shapes.

    The elements follow the nest's order (dicts by sorted key), each array row by row.
    """

    def __init__(
        self,
        env: PyEnvironment,
        flat_dtype: Any = None,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`; the flat spec has bounds if all of its action specs have.

        Args:
          env: The environment.
          flat_dtype: The dtype of the vector, required if the dtypes of the actions
            differ. Elements of other dtypes are cast, floats to integers by
            truncation.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          ValueError: If there are no actions, their dtypes differ and `flat_dtype` is
            not given, or `flat_dtype` cannot hold their bounds.
        """
        super().__init__(env, handle_auto_reset)
        specs = self._inner_specs
        self._splits = np.cumsum([math.prod(spec.shape) for spec in specs])[:-1]
        self._outer_spec = flat_spec(specs, flat_dtype)

    def _convert(self, flat: _Arrays, outer: tuple[int, ...]) -> _Arrays:
        parts = np.split(flat[0], self._splits, axis=-1)
        return [
            part.reshape(outer + spec.shape).astype(spec.dtype)
            for spec, part in zip(self._inner_specs, parts, strict=True)
        ]


class OneHotActionWrapper(_ActionConverter):
    """Takes one-hot vectors instead of discrete actions; other actions do not change.

    The index of a vector's largest element is the action; on a tie, the first index.
    """

    def __init__(self, env: PyEnvironment, handle_auto_reset: bool = True):
        """Wraps `env`, whose actions are any nest.

        Args:
          env: The environment.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          ValueError: If a discrete action has more than one dimension, no bounds, or
            elements with different numbers of values.
        """
        super().__init__(env, handle_auto_reset)
        self._outer_spec = tree.map_structure_with_path(one_hot_spec, env.action_spec())

    def _convert(self, flat: _Arrays, outer: tuple[int, ...]) -> _Arrays:
        del outer  # The conversion is the same for each element.
        return [
            (np.argmax(array, -1) + spec.minimum.astype(np.int64)).astype(spec.dtype)
            if array_spec.is_discrete(spec)
            else array
            for spec, array in zip(self._inner_specs, flat, strict=True)
        ]


class EnumerateActionsWrapper(_ActionConverter):
    """Offers each combination of several discrete actions as one discrete action.

    The action is an int32 scalar from 0. The last element of the last action changes
    fastest: for `MultiDiscrete([2, 3])` the actions are (0, 0), (0, 1), (0, 2), (1, 0)
    and so on. Actions of a nest come in its order, dicts by sorted key.
    """

    def __init__(
        self,
        env: PyEnvironment,
        max_actions: int = 1024,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`, whose actions are any nest of bounded integers.

        Args:
          env: The environment.
          max_actions: The largest number of combinations; a network has an output for
            each.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          TypeError: If `max_actions` is not an integer.
          ValueError: If `env` has other actions, or more combinations than
            `max_actions`.
        """
        super().__init__(env, handle_auto_reset)
        number_checks.check_integer(
            "max_actions",
            max_actions,
            1,
            np.iinfo(np.int32).max,
            remedy="1024 is usual",
        )
        specs = self._inner_specs
        if not specs or not all(map(_is_bounded_discrete, specs)):
            raise _wrong_action_spec(
                env.action_spec(),
                "BoundedArraySpecs of integers, whose combinations can be counted; "
                "train an agent for continuous actions, such as SAC, or for actions of "
                "several kinds, such as PPO",
            )
        low, high = (
            np.concatenate(limits).astype(object)
            for limits in zip(*map(action_specs.flat_bounds, specs), strict=True)
        )
        sizes = high - low + 1
        num_actions = math.prod(sizes)
        if num_actions > max_actions:
            raise ValueError(
                f"env: got the action spec {env.action_spec()} with "
                f"{_count(num_actions)} combinations, expected at most "
                f"{max_actions:,}, the max_actions of EnumerateActionsWrapper; raise "
                "it, or train an agent whose actions may have several parts, such as "
                "PPO."
            )
        self._low = low.astype(np.int64)
        self._sizes = sizes.astype(np.int64)
        # The number of combinations of all elements that change faster than an element.
        self._strides = np.array(
            [math.prod(sizes[i + 1 :]) for i in range(len(sizes))], np.int64
        )
        self._splits = np.cumsum([math.prod(spec.shape) for spec in specs])[:-1]
        self._outer_spec = array_spec.BoundedArraySpec(
            (), np.int32, 0, num_actions - 1, name="action"
        )

    def _convert(self, flat: _Arrays, outer: tuple[int, ...]) -> _Arrays:
        (action,) = flat
        _check_bounds(action, self._outer_spec)
        numbers = action[..., np.newaxis] // self._strides % self._sizes + self._low
        return [
            part.reshape(outer + spec.shape).astype(spec.dtype)
            for spec, part in zip(
                self._inner_specs, np.split(numbers, self._splits, axis=-1), strict=True
            )
        ]


class Float32ActionsWrapper(_ActionConverter):
    """Takes float32 actions for an environment whose actions are other floats.

    Networks compute in float32, which cannot hold all bounds of float64. So actions
    are clipped to the environment's bounds after the cast. Actions that are float32 or
    discrete do not change.
    """

    def __init__(self, env: PyEnvironment, handle_auto_reset: bool = True):
        """Wraps `env`, whose actions are any nest.

        Args:
          env: The environment.
          handle_auto_reset: See `PyEnvironment`.
        """
        super().__init__(env, handle_auto_reset)
        self._outer_spec = tree.map_structure(
            action_specs.float32_spec, env.action_spec()
        )

    def _convert(self, flat: _Arrays, outer: tuple[int, ...]) -> _Arrays:
        del outer  # The conversion is the same for each element.
        return [
            array if spec.dtype == array.dtype else _cast_and_clip(spec, array)
            for spec, array in zip(self._inner_specs, flat, strict=True)
        ]


class ExtraDisabledActionsWrapper(base.PyEnvironmentBaseWrapper):
    """Adds actions that are never allowed, and a mask of the allowed actions.

    An observation becomes `(observation, mask)`, where the int64 mask, `[n + extra]` or
    `[B, n + extra]`, is 1 for the environment's own `n` actions and 0 for the others.
    Taking an extra action raises an error, to test that an agent respects its mask.
    """

    def __init__(
        self,
        env: PyEnvironment,
        num_extra_actions: int,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`, whose action is one bounded integer.

        Args:
          env: The environment.
          num_extra_actions: The number of disabled actions to add after `env`'s own.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          TypeError: If `num_extra_actions` is not an integer.
          ValueError: If `env` has other actions, or `num_extra_actions` is negative or
            more than the actions' dtype can count.
        """
        super().__init__(env, handle_auto_reset)
        spec = env.action_spec()
        if not (_is_bounded_discrete(spec) and spec.shape == ()):
            raise _wrong_action_spec(
                spec,
                "a BoundedArraySpec of one integer, to which actions can be added; "
                "flatten or discretize the actions first",
            )
        number_checks.check_integer(
            "num_extra_actions",
            num_extra_actions,
            0,
            remedy="actions cannot be taken away",
        )
        room = int(np.iinfo(spec.dtype).max) - int(spec.maximum)
        if num_extra_actions > room:
            raise ValueError(
                f"num_extra_actions: got {num_extra_actions}, expected at most {room}, "
                f"so that {spec.dtype} can number the actions; lower it, or widen the "
                "dtype."
            )
        self._allowed_spec = spec
        self._action_spec = spec.replace(maximum=int(spec.maximum) + num_extra_actions)
        mask = np.repeat([1, 0], [int(spec.num_values), num_extra_actions])
        self._mask_spec = array_spec.BoundedArraySpec(
            mask.shape, np.int64, 0, 1, name="mask"
        )
        # Read-only, because all observations share it.
        self._mask = np.broadcast_to(
            mask.astype(np.int64), base.outer_shape(env) + mask.shape
        )

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the actions, the extra ones included."""
        return self._action_spec

    def observation_spec(self) -> Any:
        """The specs of the observation and the mask, a tuple."""
        return self._env.observation_spec(), self._mask_spec

    def _step(self, action: Any) -> ts.TimeStep:
        if np.any(np.asarray(action) > self._allowed_spec.maximum):
            raise ValueError(
                f"action: got {action}, expected at most {self._allowed_spec.maximum}, "
                "because the actions above are disabled; give the agent an "
                "observation_and_action_constraint_splitter that takes the mask out "
                "of the observation."
            )
        return super()._step(action)

    def _changed(self, time_step: ts.TimeStep) -> ts.TimeStep:
        return time_step._replace(observation=(time_step.observation, self._mask))


def _clip(spec: Any, value: Any) -> Any:
    if not array_spec.is_bounded(spec):
        return value
    array = np.asarray(value)
    # np.clip takes three times as long for short arrays.
    clipped = np.minimum(np.maximum(array, spec.minimum), spec.maximum)
    # An action of another integer or floating dtype gets the dtype of the spec.
    castable = action_arrays.can_cast(array.dtype, spec.dtype)
    return clipped.astype(spec.dtype) if castable else clipped


def _cast_and_clip(spec: Any, array: np.ndarray) -> np.ndarray:
    wide = array.astype(np.float64)
    if array_spec.is_bounded(spec):
        wide = np.clip(wide, spec.minimum, spec.maximum)
    return wide.astype(spec.dtype)


def _count(number: int) -> str:
    """Writes a number that may be far too large to read."""
    return f"{number:,}" if number < 10**12 else "more than 10^12"


def _check_bounds(action: np.ndarray, spec: Any) -> None:
    remedy = "take actions that follow the action spec"
    matching.check_bounds("action", action, spec, remedy=remedy)


def _is_bounded_discrete(spec: Any) -> bool:
    return array_spec.is_bounded(spec) and array_spec.is_discrete(spec)


def _wrong_action_spec(spec: Any, expected: str) -> ValueError:
    return ValueError(f"env: got the action spec {spec}, expected {expected}.")
