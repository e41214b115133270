"""Wrappers that change the values of actions: discretized, clipped, shifted."""

from __future__ import annotations

from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.environments.boundary import action_arrays
from tfrl.environments.wrappers import base
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts


class ActionDiscretizeWrapper(base.PyEnvironmentBaseWrapper):
    """Offers a number of evenly spaced values of each element of a continuous action.

    The discrete action is int32, of the same shape as the continuous one, and a scalar
    where that has shape `(1,)`.
    """

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        num_actions: Any,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`, whose actions are a single array with finite bounds.

        Args:
          env: The environment.
          num_actions: How many values each element gets, at least 2: one number, or an
            array that broadcasts to the shape of the action.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          ValueError: If `env` has other actions, or `num_actions` does not fit.
        """
        super().__init__(env, handle_auto_reset)
        self._continuous_spec = _single_bounded_spec(env, type(self).__name__)
        shape = self._continuous_spec.shape
        counts = _broadcast_counts(num_actions, shape)
        low, high = (
            np.broadcast_to(bound, shape).ravel()
            for bound in (self._continuous_spec.minimum, self._continuous_spec.maximum)
        )
        self._values = [
            np.linspace(*limits).astype(self._continuous_spec.dtype)
            for limits in zip(low, high, counts.ravel(), strict=True)
        ]
        equal = counts.size > 0 and np.all(counts == counts.flat[0])
        self._discrete_spec = array_spec.BoundedArraySpec(
            () if shape == (1,) else shape,
            np.int32,
            minimum=0,
            maximum=(counts.flat[0] if equal else counts) - 1,
            name=self._continuous_spec.name,
        )

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the discrete actions."""
        return self._discrete_spec

    def _step(self, action: Any) -> ts.TimeStep:
        values = self._to_continuous(np.asarray(action))
        return self._env.step(tree.unflatten_as(self._env.action_spec(), [values]))

    def _to_continuous(self, action: np.ndarray) -> np.ndarray:
        spec = self._discrete_spec
        outer = () if self.batch_size is None else (self.batch_size,)
        if action.shape != outer + spec.shape:
            raise ValueError(
                f"action: got shape {action.shape}, expected {outer + spec.shape}; "
                f"take actions that follow {spec}."
            )
        if np.any(action < spec.minimum) or np.any(action > spec.maximum):
            raise ValueError(
                f"action: got {action}, expected integers from {spec.minimum} to "
                f"{spec.maximum}; take actions that follow the action spec."
            )
        flat = action.reshape(*outer, len(self._values))
        columns = [values[flat[..., i]] for i, values in enumerate(self._values)]
        return np.stack(columns, -1).reshape(outer + self._continuous_spec.shape)


class ActionClipWrapper(base.PyEnvironmentBaseWrapper):
    """Clips actions to the bounds of their specs before it applies them."""

    def _step(self, action: Any) -> ts.TimeStep:
        spec = self._env.action_spec()
        clipped = [
            _clip(leaf_spec, leaf)
            for leaf_spec, leaf in zip(
                tree.flatten(spec), action_arrays.leaves(action, spec), strict=True
            )
        ]
        return self._env.step(tree.unflatten_as(spec, clipped))


class ActionOffsetWrapper(base.PyEnvironmentBaseWrapper):
    """Shifts discrete actions so that they start at 0, as a Q-network numbers them."""

    def __init__(
        self, env: py_environment.PyEnvironment, handle_auto_reset: bool = True
    ):
        """Wraps `env`, whose actions are a single array of bounded integers.

        Raises:
          ValueError: If `env` has other actions.
        """
        super().__init__(env, handle_auto_reset)
        spec = env.action_spec()
        if not (array_spec.is_bounded(spec) and array_spec.is_discrete(spec)):
            raise ValueError(
                f"env: got the action spec {spec}, expected a single "
                "BoundedArraySpec of integers, which alone has a first action; leave "
                "ActionOffsetWrapper out."
            )
        self._offset = spec.minimum
        # The difference of two 64-bit integers fits into 64 bits without a sign.
        span = spec.maximum.astype(np.uint64) - spec.minimum.astype(np.uint64)
        if np.any(span > np.uint64(np.iinfo(spec.dtype).max)):
            raise ValueError(
                f"env: got the action spec {spec}, expected no more values than "
                f"{spec.dtype} can count from 0; give the actions a wider dtype, or "
                "bounds."
            )
        self._zero_based_spec = array_spec.BoundedArraySpec(
            spec.shape,
            spec.dtype,
            minimum=np.zeros_like(spec.minimum),
            maximum=span.astype(spec.dtype),
            name=spec.name,
        )

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the actions, from 0."""
        return self._zero_based_spec

    def _step(self, action: Any) -> ts.TimeStep:
        return self._env.step(np.asarray(action + self._offset, self._offset.dtype))


def _clip(spec: Any, value: Any) -> Any:
    if not array_spec.is_bounded(spec):
        return value
    array = np.asarray(value)
    clipped = np.clip(array, spec.minimum, spec.maximum)
    # What comes from another integer or floating dtype gets the spec's own.
    castable = action_arrays.can_cast(array.dtype, spec.dtype)
    return clipped.astype(spec.dtype) if castable else clipped


def _single_bounded_spec(
    env: py_environment.PyEnvironment, wrapper: str
) -> array_spec.BoundedArraySpec:
    specs = tree.flatten(env.action_spec())
    if len(specs) == 1 and array_spec.is_bounded(specs[0]):
        spec = specs[0]
        limit = np.finfo(spec.dtype) if array_spec.is_continuous(spec) else None
        if (
            limit
            and np.all(spec.minimum > limit.min)
            and np.all(spec.maximum < limit.max)
        ):
            return spec
    raise ValueError(
        f"env: got the action spec {env.action_spec()}, expected a single "
        f"BoundedArraySpec of floats with finite bounds, which {wrapper} can divide; "
        "flatten or bound the actions first."
    )


def _broadcast_counts(num_actions: Any, shape: tuple[int, ...]) -> np.ndarray:
    counts = np.asarray(num_actions)
    try:
        counts = np.broadcast_to(counts, shape)
    except ValueError as error:
        raise ValueError(
            f"num_actions: got shape {counts.shape}, expected one that broadcasts to "
            f"the action's shape {shape}; give one number for all elements ({error})."
        ) from error
    if not np.issubdtype(counts.dtype, np.integer) or not np.all(counts >= 2):
        raise ValueError(
            f"num_actions: got {num_actions}, expected at least 2 values for each "
            "element, an integer; raise it."
        )
    return counts
