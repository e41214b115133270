"""Makes the specs of actions that are one-hot, float32 or in one flat vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tree

from tfrl.specs import array_spec, bounds

# The longest one-hot vector; more values mean that the spec has no real bounds.
_MAX_ONE_HOT = 2**20


def one_hot_spec(path: tuple[Any, ...], spec: Any) -> Any:
    """Returns the spec of one-hot vectors for a discrete spec; other specs unchanged.

    Args:
      path: The path of the spec in its nest, for the message.
      spec: The spec of an action, `[]` or `[k]`.

    Raises:
      ValueError: If the spec is discrete and its elements do not have one common number
        of values.
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


def float32_spec(spec: array_spec.ArraySpec) -> array_spec.ArraySpec:
    """Returns a spec of float32 for a spec of other floats; other specs unchanged."""
    if not np.issubdtype(spec.dtype, np.floating) or spec.dtype == np.float32:
        return spec
    if not isinstance(spec, array_spec.BoundedArraySpec):
        return spec.replace(dtype=np.float32)
    low, high = (
        bounds.clip_to_dtype(bound, np.dtype(np.float32)).astype(np.float32)
        for bound in (spec.minimum, spec.maximum)
    )
    return array_spec.BoundedArraySpec(spec.shape, np.float32, low, high, spec.name)


def flat_spec(
    specs: Sequence[array_spec.ArraySpec], flat_dtype: Any = None
) -> array_spec.ArraySpec:
    """Returns the spec of one vector `[N]` that holds the elements of several actions.

    The spec has bounds if all of `specs` have bounds.

    Args:
      specs: The specs of the actions.
      flat_dtype: The dtype of the vector; None for the common dtype of `specs`.

    Raises:
      ValueError: If there are no specs, their dtypes differ and `flat_dtype` is None,
        or `flat_dtype` cannot hold their bounds.
    """
    dtype = _flat_dtype(specs, flat_dtype)
    shape = (sum(math.prod(spec.shape) for spec in specs),)
    name = "FlattenedActionSpec"
    limits = [
        flat_bounds(s) for s in specs if isinstance(s, array_spec.BoundedArraySpec)
    ]
    if len(limits) < len(specs):
        return array_spec.ArraySpec(shape, dtype, name)
    low, high = map(np.concatenate, zip(*limits, strict=True))
    try:
        return array_spec.BoundedArraySpec(shape, dtype, low, high, name)
    except ValueError as error:
        raise ValueError(
            f"flat_dtype: got {dtype}, expected one that holds the bounds of all "
            f"actions, {low} and {high} ({error}); give a wider one."
        ) from error


def flat_bounds(spec: array_spec.BoundedArraySpec) -> list[np.ndarray]:
    """Returns minimum and maximum, each with one number for each element."""
    return [
        np.broadcast_to(bound, spec.shape).ravel()
        for bound in (spec.minimum, spec.maximum)
    ]


def _flat_dtype(
    specs: Sequence[array_spec.ArraySpec], flat_dtype: Any
) -> np.dtype[Any]:
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


class ActionBins(NamedTuple):
    """The values that each element of a continuous action may take.

    Attributes:
      spec: The spec of the discrete action, int32 from 0. It has the shape of the
        continuous action, except that `(1,)` becomes a scalar.
      values: The values of all elements, one element after the other.
      offsets: For each element the index of its first value in `values`.
    """

    spec: array_spec.BoundedArraySpec
    values: np.ndarray
    offsets: np.ndarray


def divide(action_spec: Any, num_actions: Any) -> ActionBins:
    """Divides each element of an action into evenly spaced values, bounds included.

    Args:
      action_spec: A nest of one `BoundedArraySpec` of floats with finite bounds.
      num_actions: The number of values of each element, at least 2: one number, or an
        array that broadcasts to the shape of the action.

    Raises:
      ValueError: If `action_spec` is anything else, or `num_actions` is below 2, not an
        integer or of a shape that does not broadcast.
    """
    spec = _single_bounded_float_spec(action_spec)
    counts = _broadcast_counts(num_actions, spec.shape)
    low, high = flat_bounds(spec)
    values = [
        np.linspace(*limits).astype(spec.dtype)
        for limits in zip(low, high, counts.ravel(), strict=True)
    ]
    equal = counts.size > 0 and np.all(counts == counts.flat[0])
    discrete_spec = array_spec.BoundedArraySpec(
        () if spec.shape == (1,) else spec.shape,
        np.int32,
        minimum=0,
        maximum=(counts.flat[0] if equal else counts) - 1,
        name=spec.name,
    )
    offsets = np.cumsum(counts.ravel()) - counts.ravel()
    return ActionBins(discrete_spec, np.concatenate(values), offsets.astype(np.int32))


def _single_bounded_float_spec(action_spec: Any) -> array_spec.BoundedArraySpec:
    specs = tree.flatten(action_spec)
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
        f"env: got the action spec {action_spec}, expected a single BoundedArraySpec "
        "of floats with finite bounds, which ActionDiscretizeWrapper can divide; "
        "flatten or bound the actions first, or leave it out if they are discrete."
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
