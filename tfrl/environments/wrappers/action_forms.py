"""Wrappers that change the form of actions: flat, one-hot, or more than there are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.environments.boundary import action_arrays
from tfrl.environments.wrappers import base
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts

# One-hot vectors longer than this are surely a mistake: bounds that were left out.
_MAX_ONE_HOT = 2**20


class FlattenActionWrapper(base.PyEnvironmentBaseWrapper):
    """Takes one flat vector `[N]` in place of a nest of actions of any shapes.

    The elements follow the nest's order (dicts by sorted key), each array row by row.
    """

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        flat_dtype: Any = None,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`; the flat spec has bounds if all of its action specs have.

        Args:
          env: The environment.
          flat_dtype: The dtype of the vector, needed where those of the actions
            differ. Elements of other actions are cast, floats to integers by
            truncation.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          ValueError: If there are no actions, their dtypes differ and `flat_dtype` is
            not given, or it cannot hold their bounds.
        """
        super().__init__(env, handle_auto_reset)
        self._structure = env.action_spec()
        self._specs = tree.flatten(self._structure)
        sizes = [math.prod(spec.shape) for spec in self._specs]
        self._splits = np.cumsum(sizes)[:-1]
        self._flat_spec = self._make_flat_spec(_flat_dtype(self._specs, flat_dtype))

    def action_spec(self) -> array_spec.ArraySpec:
        """The spec of the vector."""
        return self._flat_spec

    def _make_flat_spec(self, dtype: np.dtype[Any]) -> array_spec.ArraySpec:
        shape = (sum(math.prod(spec.shape) for spec in self._specs),)
        name = "FlattenedActionSpec"
        if not all(map(array_spec.is_bounded, self._specs)):
            return array_spec.ArraySpec(shape, dtype, name)
        low, high = (
            np.concatenate(
                [
                    np.broadcast_to(getattr(spec, bound), spec.shape).ravel()
                    for spec in self._specs
                ]
            )
            for bound in ("minimum", "maximum")
        )
        try:
            return array_spec.BoundedArraySpec(shape, dtype, low, high, name)
        except ValueError as error:
            raise ValueError(
                f"flat_dtype: got {dtype}, expected one that holds the bounds of all "
                f"actions, {low} and {high} ({error}); give a wider one."
            ) from error

    def _step(self, action: Any) -> ts.TimeStep:
        outer = base.outer_shape(self._env)
        flat = action_arrays.flatten(action, self._flat_spec, outer)[0]
        parts = [
            part.reshape(outer + spec.shape).astype(spec.dtype)
            for spec, part in zip(
                self._specs, np.split(flat, self._splits, axis=-1), strict=True
            )
        ]
        return self._env.step(tree.unflatten_as(self._structure, parts))


class OneHotActionWrapper(base.PyEnvironmentBaseWrapper):
    """Takes one-hot vectors in place of discrete actions; others stay.

    A vector means the action at its largest element, the first of them on a tie.
    """

    def __init__(
        self, env: py_environment.PyEnvironment, handle_auto_reset: bool = True
    ):
        """Wraps `env`, whose actions are any nest.

        Raises:
          ValueError: If a discrete action has more than one dimension, no bounds, or
            elements with different numbers of values.
        """
        super().__init__(env, handle_auto_reset)
        self._specs = tree.flatten(env.action_spec())
        self._one_hot_spec = tree.map_structure_with_path(
            one_hot_spec, env.action_spec()
        )

    def action_spec(self) -> Any:
        """The specs of the actions, those of one-hot vectors `[..., n]` among them."""
        return self._one_hot_spec

    def _step(self, action: Any) -> ts.TimeStep:
        flat = action_arrays.flatten(
            action, self._one_hot_spec, base.outer_shape(self._env)
        )
        actions = [
            (np.argmax(array, -1) + spec.minimum.astype(np.int64)).astype(spec.dtype)
            if array_spec.is_discrete(spec)
            else array
            for spec, array in zip(self._specs, flat, strict=True)
        ]
        return self._env.step(tree.unflatten_as(self._env.action_spec(), actions))


class ExtraDisabledActionsWrapper(base.PyEnvironmentBaseWrapper):
    """Adds actions that are never allowed, and a mask that says so.

    An observation becomes `(observation, mask)`, where the int64 mask, `[n + extra]` or
    `[B, n + extra]`, is 1 for the environment's own `n` actions and 0 for the others.
    It tests whether an agent keeps to its mask: taking an extra action is an error.
    """

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        num_extra_actions: int,
        handle_auto_reset: bool = True,
    ):
        """Adds `num_extra_actions` to `env`, whose action is one bounded integer.

        Raises:
          TypeError: If the number is no integer.
          ValueError: If `env` has other actions, or the number is negative, or more
            than the actions' dtype can count.
        """
        super().__init__(env, handle_auto_reset)
        spec = env.action_spec()
        if not (
            array_spec.is_bounded(spec)
            and array_spec.is_discrete(spec)
            and spec.shape == ()
        ):
            raise ValueError(
                f"env: got the action spec {spec}, expected a BoundedArraySpec of one "
                "integer, to which actions can be added; flatten or discretize the "
                "actions first."
            )
        num_extra = base.check_count(
            "num_extra_actions", num_extra_actions, 0, "actions cannot be taken away"
        )
        room = int(np.iinfo(spec.dtype).max) - int(spec.maximum)
        if num_extra > room:
            raise ValueError(
                f"num_extra_actions: got {num_extra}, expected at most {room}, so that "
                f"{spec.dtype} can number the actions; lower it, or widen the dtype."
            )
        self._allowed_spec = spec
        self._action_spec = spec.replace(maximum=int(spec.maximum) + num_extra)
        mask = np.repeat([1, 0], [int(spec.num_values), num_extra])
        self._mask_spec = array_spec.BoundedArraySpec(
            mask.shape, np.int64, 0, 1, name="mask"
        )
        outer = base.outer_shape(env)
        # Read-only, since every observation shares it.
        self._mask = np.broadcast_to(mask.astype(np.int64), outer + mask.shape)

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the actions, the extra ones included."""
        return self._action_spec

    def observation_spec(self) -> Any:
        """The specs of the observation and the mask, a tuple."""
        return self._env.observation_spec(), self._mask_spec

    def _reset(self) -> ts.TimeStep:
        return self._add_mask(self._env.reset())

    def _step(self, action: Any) -> ts.TimeStep:
        if np.any(np.asarray(action) > self._allowed_spec.maximum):
            raise ValueError(
                f"action: got {action}, expected at most {self._allowed_spec.maximum}, "
                "since the actions above are disabled; give the agent an "
                "observation_and_action_constraint_splitter that takes the mask out "
                "of the observation."
            )
        return self._add_mask(self._env.step(action))

    def _add_mask(self, time_step: ts.TimeStep) -> ts.TimeStep:
        return time_step._replace(observation=(time_step.observation, self._mask))


def one_hot_spec(path: tuple[Any, ...], spec: Any) -> Any:
    """Returns the spec of one-hot vectors for a discrete spec, any other as it is.

    Args:
      path: Where the spec is in its nest, for the message.
      spec: The spec of an action, `[]` or `[k]`.

    Raises:
      ValueError: If the spec is discrete, and has no one number of values.
    """
    if not array_spec.is_discrete(spec):
        return spec
    num_values: Any = None
    if array_spec.is_bounded(spec) and len(spec.shape) <= 1:
        num_values = np.unique(spec.num_values)
    if num_values is None or num_values.size != 1 or num_values[0] > _MAX_ONE_HOT:
        where = "/".join(["action_spec", *map(str, path)])
        raise ValueError(
            f"{where}: got {spec}, expected a BoundedArraySpec of at most one "
            "dimension whose elements have the same, small number of values; bound or "
            "flatten the actions first."
        )
    return array_spec.BoundedArraySpec(
        (*spec.shape, int(num_values[0])), spec.dtype, 0, 1, name="one_hot_action_spec"
    )


def _flat_dtype(specs: list[array_spec.ArraySpec], flat_dtype: Any) -> np.dtype[Any]:
    dtypes = {spec.dtype for spec in specs}
    if not specs:
        raise ValueError(
            "env: got an environment without actions, expected at least one action to "
            "flatten; leave FlattenActionWrapper out."
        )
    if flat_dtype is not None:
        return np.dtype(flat_dtype)
    if len(dtypes) > 1:
        names = ", ".join(sorted(map(str, dtypes)))
        raise ValueError(
            f"env: got actions of dtypes {names}, expected a single dtype; give "
            "flat_dtype, such as np.float32, to which all of them are cast."
        )
    return dtypes.pop()
