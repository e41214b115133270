"""Divides continuous actions into bins; discrete actions are their numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tree

from tfrl.environments.boundary import action_specs
from tfrl.specs import array_spec


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
    low, high = action_specs.flat_bounds(spec)
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
