"""Checks of tensors against the dtypes and inner shapes of specs."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.specs import matching
from tfrl.utils import nest_utils


def has_entries(nest: Any) -> bool:
    """Whether a nest of states or specs has entries, unlike `()` and None."""
    return nest is not None and bool(tf.nest.flatten(nest))


def check_nest(tensors: Any, specs: Any, where: str) -> Any:
    """Checks structure, dtypes and inner shapes; returns `tensors`, pruned if needed.

    Arrays, numbers and lists of numbers of another dtype become tensors of the spec's
    dtype. Floats are converted to floats, and integers to integers or floats.

    Raises:
      ValueError: If something differs; the message gives its path in the nest.
    """
    try:
        tf.nest.assert_same_structure(tensors, specs)
    except (ValueError, TypeError):
        tensors = _like(specs, tensors, where)
    flat_tensors = tf.nest.flatten(tensors)
    is_converted = False
    for i, (tensor, spec) in enumerate(
        zip(flat_tensors, tf.nest.flatten(specs), strict=True)
    ):
        if hasattr(tensor, "dtype") and matching.matches(tensor, spec, None):
            continue
        converted = _converted(tensor, spec)
        place = matching.join(where, *tree.flatten_with_path(specs)[i][0])
        remedy = "cast or reshape it, or build the network for it"
        matching.check(place, converted, spec, None, remedy=remedy)
        flat_tensors[i], is_converted = converted, True
    if is_converted:
        tensors = tf.nest.pack_sequence_as(tensors, flat_tensors)
    return tensors


def _converted(value: Any, spec: Any) -> Any:
    """Converts an array or number to a tensor of the spec's dtype, if that is safe.

    A tensor is returned unchanged, as are arrays that the dtype cannot hold.
    """
    if hasattr(value, "dtype") and not isinstance(value, np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    try:
        given = tf.as_dtype(array.dtype)
    except TypeError:
        return array
    if not (
        (spec.dtype.is_floating and (given.is_floating or given.is_integer))
        or (spec.dtype.is_integer and given.is_integer)
    ):
        return array
    cast = array.astype(spec.dtype.as_numpy_dtype)
    if spec.dtype.is_integer and not np.array_equal(cast, array):
        return array
    return tf.convert_to_tensor(cast)


def _like(specs: Any, values: Any, where: str) -> Any:
    """Drops dictionary keys that `specs` lacks; turns lists of numbers into arrays."""
    try:
        values = nest_utils.prune_extra_keys(specs, values)
        parts = tree.flatten_up_to(specs, values, check_types=False)
        if any(isinstance(part, list) for part in parts):
            parts = map(_as_array, tree.flatten_up_to(specs, values))
            values = tf.nest.pack_sequence_as(specs, list(parts))
        tf.nest.assert_same_structure(values, specs)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{where}: got {tf.nest.map_structure(_describe, values)}, expected the "
            f"structure of {specs}; pass the same nest ({error})."
        ) from error
    return values


def _as_array(part: Any) -> Any:
    # Tensors in a list may be parts of a nest, so they are not stacked.
    if isinstance(part, list) and not nest_utils.has_tensors(part):
        return np.asarray(part)
    return part


def _describe(leaf: Any) -> str:
    return f"{type(leaf).__name__}{tuple(getattr(leaf, 'shape', ()))}"
