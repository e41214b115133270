"""Checks of tensors against the dtypes and inner shapes of specs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tree

from tfrl.utils import nest_utils


def has_entries(nest: Any) -> bool:
    """Whether a nest of states or specs has entries, unlike `()` and None."""
    return nest is not None and bool(tf.nest.flatten(nest))


def check_nest(tensors: Any, specs: Any, where: str) -> Any:
    """Checks structure, dtypes and inner shapes; returns `tensors`, pruned if needed.

    Raises:
      ValueError: If something differs; the message gives its path in the nest.
    """
    try:
        tf.nest.assert_same_structure(tensors, specs)
    except (ValueError, TypeError):
        tensors = _pruned(tensors, specs, where)
    flat_tensors = tf.nest.flatten(tensors)
    for i, (tensor, spec) in enumerate(
        zip(flat_tensors, tf.nest.flatten(specs), strict=True)
    ):
        shape = tf.TensorShape(tensor.shape)
        inner_rank = spec.shape.rank
        fits = (
            shape.rank is None
            or inner_rank is None
            or (
                shape.rank >= inner_rank
                and shape[shape.rank - inner_rank :].is_compatible_with(spec.shape)
            )
        )
        if not fits or tf.as_dtype(tensor.dtype) != spec.dtype:
            path = "/".join(map(str, tree.flatten_with_path(specs)[i][0]))
            raise ValueError(
                f"{where}{f' at {path!r}' if path else ''}: got dtype "
                f"{tf.as_dtype(tensor.dtype).name} and shape {shape}, expected dtype "
                f"{spec.dtype.name} and inner shape {spec.shape} behind the outer "
                "dimensions; cast or reshape it, or build the network for it."
            )
    return tensors


def _pruned(tensors: Any, specs: Any, where: str) -> Any:
    """Drops the dictionary keys that `specs` do not have."""
    try:
        tensors = nest_utils.prune_extra_keys(specs, tensors)
        tf.nest.assert_same_structure(tensors, specs)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{where}: got {tf.nest.map_structure(_describe, tensors)}, expected the "
            f"structure of {specs}; pass the same nest ({error})."
        ) from error
    return tensors


def _describe(leaf: Any) -> str:
    return f"{type(leaf).__name__}{tuple(getattr(leaf, 'shape', ()))}"
