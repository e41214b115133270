"""Makes the specs of actions that are one-hot, float32 or in one flat vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

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
