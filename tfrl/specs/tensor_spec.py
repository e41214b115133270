"""Specs of tensors, and functions of nests of specs.

This module is the tensor counterpart of `tfrl.specs.array_spec`. Specs never include
the batch or time dimension; `add_outer_dims_nest` adds these dimensions where
TensorFlow needs a full signature. The functions of `tfrl.specs.tensor_sampling` and
`tfrl.specs.spec_proto` are re-exported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.specs import array_spec, bounds, dm_env_specs
from tfrl.specs.bounded_tensor_spec import BoundedTensorSpec
from tfrl.specs.spec_proto import (
    from_packed_proto,
    from_pbtxt_file,
    from_proto,
    to_pbtxt_file,
    to_proto,
)
from tfrl.specs.tensor_sampling import (
    sample_bounded_spec,
    sample_spec_nest,
    zero_spec_nest,
)

TensorSpec = tf.TensorSpec

__all__ = [
    "BoundedTensorSpec",
    "TensorSpec",
    "add_outer_dim",
    "add_outer_dims_nest",
    "from_packed_proto",
    "from_pbtxt_file",
    "from_proto",
    "from_spec",
    "is_bounded",
    "is_continuous",
    "is_discrete",
    "remove_outer_dims_nest",
    "sample_bounded_spec",
    "sample_spec_nest",
    "to_array_spec",
    "to_nest_array_spec",
    "to_pbtxt_file",
    "to_proto",
    "with_dtype",
    "zero_spec_nest",
]


def is_bounded(spec: Any) -> bool:
    """Whether `spec`, of tensors or arrays, has a minimum and a maximum."""
    return all(hasattr(spec, f) for f in ("minimum", "maximum", "dtype", "shape"))


def is_discrete(spec: Any) -> bool:
    """Whether the dtype of a tensor or array spec is an integer."""
    return tf.as_dtype(spec.dtype).is_integer


def is_continuous(spec: Any) -> bool:
    """Whether the dtype of a tensor or array spec is floating."""
    return tf.as_dtype(spec.dtype).is_floating


def from_spec(spec: Any) -> Any:
    """Returns the nest of tensor specs for a nest of array specs, keeping bounds.

    Specs of dm_env are array specs, too. Tensor specs, and any other `tf.TypeSpec`, do
    not change.

    Raises:
      ValueError: If something in the nest is not a spec.
    """

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, tf.TypeSpec):
            return leaf
        if is_bounded(leaf):
            return BoundedTensorSpec.from_spec(leaf)
        if isinstance(leaf, array_spec.ArraySpec | dm_env_specs.Array):
            return TensorSpec(leaf.shape, leaf.dtype, leaf.name)
        raise ValueError(
            f"spec: got {leaf!r} of type {type(leaf).__name__} in the nest, expected "
            "ArraySpecs or TensorSpecs; describe an array with ArraySpec.from_array."
        )

    return tf.nest.map_structure(convert, spec)


def to_array_spec(tensor_spec: Any) -> Any:
    """Returns the nest of array specs for a nest of tensor specs, keeping bounds."""

    def convert(leaf: Any) -> array_spec.ArraySpec:
        if isinstance(leaf, array_spec.ArraySpec):
            return leaf
        if is_bounded(leaf):
            return array_spec.BoundedArraySpec.from_spec(leaf)
        return array_spec.ArraySpec.from_spec(leaf)

    return tf.nest.map_structure(convert, tensor_spec)


def to_nest_array_spec(nest_array_spec: Any) -> Any:
    """Does the same as `to_array_spec`."""
    return to_array_spec(nest_array_spec)


def add_outer_dims_nest(specs: Any, outer_dims: Sequence[int | None]) -> Any:
    """Returns the nest of tensor specs with `outer_dims` before each shape.

    Raises:
      ValueError: If `outer_dims` is neither a tuple nor a list.
    """
    if not isinstance(outer_dims, tuple | list):
        raise ValueError(
            f"outer_dims: got {outer_dims!r}, expected a tuple or list of dimensions; "
            "write (batch_size,) for one."
        )
    outer_shape = tf.TensorShape(outer_dims)
    return tf.nest.map_structure(
        lambda spec: _rebuild(
            spec, outer_shape.concatenate(spec.shape), spec.dtype, lambda b, _: b
        ),
        specs,
    )


def add_outer_dim(specs: Any, dim: int | None = None) -> Any:
    """Returns the nest of tensor specs with one outer dimension, `dim`, added."""
    return add_outer_dims_nest(specs, (dim,))


def remove_outer_dims_nest(specs: Any, num_outer_dims: int) -> Any:
    """Returns the nest of tensor specs without the first `num_outer_dims` dimensions.

    If bounds differ along a removed dimension, the widest bound is kept.

    Raises:
      ValueError: If a spec has fewer than `num_outer_dims` dimensions.
    """

    def remove(path: tuple[Any, ...], spec: Any) -> Any:
        rank = len(spec.shape) - num_outer_dims
        if rank < 0:
            raise ValueError(
                f"{'/'.join(map(str, path)) or 'specs'}: the shape of spec {spec} has "
                f"rank lower than the specified num_outer_dims {num_outer_dims}; pass "
                "specs that include the outer dimensions."
            )

        def shrink(bound: np.ndarray, widest: Callable[..., np.ndarray]) -> np.ndarray:
            return widest(bound, axis=tuple(range(max(0, bound.ndim - rank))))

        return _rebuild(spec, spec.shape[num_outer_dims:], spec.dtype, shrink)

    return tree.map_structure_with_path(remove, specs)


def with_dtype(specs: Any, dtype: Any) -> Any:
    """Returns the nest of tensor specs with another dtype.

    If the new dtype cannot hold the bounds, its limits replace them.
    """
    dtype = tf.as_dtype(dtype)

    def clip(bound: np.ndarray, _: Any) -> np.ndarray:
        return bounds.clip_to_dtype(bound, np.dtype(dtype.as_numpy_dtype))

    return tf.nest.map_structure(
        lambda spec: _rebuild(spec, spec.shape, dtype, clip), specs
    )


def _rebuild(
    spec: Any,
    shape: Any,
    dtype: Any,
    map_bound: Callable[[np.ndarray, Callable[..., np.ndarray]], Any],
) -> Any:
    """Returns a tensor spec of the same kind as `spec`, with another shape and dtype.

    `map_bound(bound, widest)` makes the new bounds; `widest` is `np.min` or `np.max`.
    """
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.SparseTensorSpec(shape, dtype)
    if is_bounded(spec):
        return BoundedTensorSpec(
            shape,
            dtype,
            map_bound(np.asarray(spec.minimum), np.min),
            map_bound(np.asarray(spec.maximum), np.max),
            spec.name,
        )
    return TensorSpec(shape, dtype, spec.name)
