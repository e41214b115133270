"""Checks of tensors against the dtypes and inner shapes of specs."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tree

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
        if _fits(tensor, spec):
            continue
        converted = _converted(tensor, spec)
        if not _fits(converted, spec):
            path = "/".join(map(str, tree.flatten_with_path(specs)[i][0]))
            raise ValueError(
                f"{where}{f' at {path!r}' if path else ''}: got dtype "
                f"{_dtype_name(converted)} and shape {np.shape(converted)}, expected "
                f"dtype {spec.dtype.name} and inner shape {spec.shape} behind the "
                "outer dimensions; cast or reshape it, or build the network for it."
            )
        flat_tensors[i], is_converted = converted, True
    if is_converted:
        tensors = tf.nest.pack_sequence_as(tensors, flat_tensors)
    return tensors


def _fits(tensor: Any, spec: Any) -> bool:
    """Whether a tensor or array has a spec's dtype, and its shape as inner shape."""
    try:
        shape, dtype = tf.TensorShape(tensor.shape), tf.as_dtype(tensor.dtype)
    except (AttributeError, TypeError):  # Numbers, and arrays of objects.
        return False
    inner_rank = spec.shape.rank
    return dtype == spec.dtype and (
        shape.rank is None
        or inner_rank is None
        or (
            shape.rank >= inner_rank
            and shape[shape.rank - inner_rank :].is_compatible_with(spec.shape)
        )
    )


def _converted(value: Any, spec: Any) -> Any:
    """Converts an array or number to a tensor of the spec's dtype, if that is safe.

    A tensor is returned unchanged, as are numbers that the dtype cannot hold.
    """
    if not isinstance(value, np.ndarray | np.generic | int | float):
        return value
    array = np.asarray(value)
    try:
        given = tf.as_dtype(array.dtype)
    except TypeError:
        return value
    if not (
        (spec.dtype.is_floating and (given.is_floating or given.is_integer))
        or (spec.dtype.is_integer and given.is_integer)
    ):
        return value
    cast = array.astype(spec.dtype.as_numpy_dtype)
    if spec.dtype.is_integer and not np.array_equal(cast, array):
        return value
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


def _dtype_name(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    return str(
        np.asarray(value).dtype if dtype is None else getattr(dtype, "name", dtype)
    )


def _describe(leaf: Any) -> str:
    return f"{type(leaf).__name__}{tuple(getattr(leaf, 'shape', ()))}"
