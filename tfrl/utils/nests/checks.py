"""Compares nests of tensors with nests of specs: dtypes, shapes, outer dimensions.

A tensor *fits* a spec if it has the spec's shape after some outer dimensions. In this
module arrays count as tensors, and an `ArraySpec` counts as a spec.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.specs import matching
from tfrl.utils import composite
from tfrl.utils.nests.structure import (
    assert_same_structure,
    flatten_with_joined_paths,
    prune_extra_keys,
)


def spec_shape(t: Any) -> tf.TensorShape:
    """Returns the static shape of a tensor, array or spec."""
    if isinstance(t, tf.SparseTensor):
        # The dense shape of a sparse tensor is data; only its rank is certain.
        return tf.TensorShape([None] * t.dense_shape.shape[0])
    return tf.TensorShape(t.shape)


def assert_tensors_matching_dtypes_and_shapes(
    tensors_1: Any,
    tensors_2: Any,
    caller: Any,
    tensors_1_name: str,
    tensors_2_name: str,
) -> None:
    """Checks that two nests agree in structure, dtypes and ranks.

    Args:
      tensors_1: A nest of tensors.
      tensors_2: A nest of tensors.
      caller: The name of the caller, for the error.
      tensors_1_name: A name of `tensors_1`, for the error.
      tensors_2_name: A name of `tensors_2`, for the error.

    Raises:
      ValueError: If they differ.
    """
    _assert_leaves_match(
        tensors_1,
        tensors_2,
        lambda shape_1, shape_2: shape_1.rank == shape_2.rank,
        names=(f"{caller}", tensors_1_name, tensors_2_name),
    )


def assert_matching_dtypes_and_inner_shapes(
    tensors_or_specs: Any,
    specs: Any,
    caller: Any,
    tensors_name: str,
    specs_name: str,
    allow_extra_fields: bool = False,
) -> None:
    """Checks that every tensor has its spec's dtype and ends in its spec's shape.

    Args:
      tensors_or_specs: A nest of tensors, of values that convert to tensors, or of
        specs.
      specs: A nest of specs.
      caller: The name of the caller, for the error.
      tensors_name: A name of `tensors_or_specs`, for the error.
      specs_name: A name of `specs`, for the error.
      allow_extra_fields: Whether dicts may hold more keys than `specs`.

    Raises:
      ValueError: If they differ.
    """
    if allow_extra_fields:
        tensors_or_specs = prune_extra_keys(specs, tensors_or_specs)
    _assert_leaves_match(
        tensors_or_specs,
        specs,
        functools.partial(matching.fits, outer=None),
        (f"{caller}", tensors_name, specs_name),
    )


def is_batched_nested_tensors(
    tensors: Any,
    specs: Any,
    num_outer_dims: int = 1,
    allow_extra_fields: bool = False,
    check_dtypes: bool = True,
) -> bool:
    """Returns whether all tensors have `num_outer_dims` dimensions before their specs'.

    The result is False if all tensors have exactly their specs' shapes, or share
    another number of outer dimensions. A dimension that a spec leaves unknown is an
    inner dimension, even if it holds a batch.

    Args:
      tensors: A nest of tensors.
      specs: A nest of specs.
      num_outer_dims: The number of outer dimensions of batched tensors.
      allow_extra_fields: Whether dicts may hold more keys than `specs`.
      check_dtypes: Whether dtypes are compared.

    Raises:
      ValueError: If some tensors are batched and others not, if a tensor does not fit
        its spec, or if a rank is not known.
      TypeError: If a dtype differs from its spec's.
    """
    if allow_extra_fields:
        tensors = prune_extra_keys(specs, tensors)
    outer_ranks = _outer_ranks(tensors, specs, check_dtypes)
    # An empty nest has no outer dimension.
    return bool(outer_ranks) and outer_ranks[0] == num_outer_dims != 0


def get_outer_rank(tensors: Any, specs: Any) -> int:
    """Returns the number of outer dimensions that all tensors share.

    The rank of an empty nest is 0.

    Raises:
      ValueError: See `is_batched_nested_tensors`.
    """
    outer_ranks = _outer_ranks(tensors, specs, check_dtypes=False)
    return outer_ranks[0] if outer_ranks else 0


def get_outer_shape(nested_tensor: Any, spec: Any) -> tf.Tensor:
    """Returns the outer shape that all tensors share, int32 `[outer rank]`.

    Raises:
      ValueError: See `is_batched_nested_tensors`.
    """
    outer_rank = get_outer_rank(nested_tensor, spec)
    if outer_rank == 0:
        return tf.constant([], dtype=tf.int32)
    first = tf.nest.flatten(nested_tensor)[0]
    return tf.cast(composite.shape(first)[:outer_rank], tf.int32)


def assert_value_spec(output_spec: Any, network_name: str) -> None:
    """Checks that a network emits values: floating-point specs `[]` or `[1]`.

    Raises:
      ValueError: If it emits anything else.
    """
    for path, spec in flatten_with_joined_paths(output_spec):
        where = f"{network_name}: output {path!r}" if path else network_name
        if not isinstance(spec, tf.TensorSpec):
            problem = "emits outputs that are not tensors"
        elif spec.shape.as_list() not in ([], [1]):
            problem = "emits multiple values"
        elif not spec.dtype.is_floating:
            problem = "emits outputs that are not real numbers"
        else:
            continue
        raise ValueError(
            f"{where} {problem}; spec: {spec}. Expected one floating-point number, of "
            "shape () or (1,); use a network that ends in a single unit."
        )


class _Pair(NamedTuple):
    """The static shapes and dtypes of a tensor and of its spec."""

    shape: tf.TensorShape
    dtype: tf.DType
    spec_shape: tf.TensorShape
    spec_dtype: tf.DType


def _pairs(tensors: Any, specs: Any, message: str) -> list[_Pair]:
    """Pairs the leaves of two nests, which must have the same structure."""
    assert_same_structure(tensors, specs, message=message)
    pairs = []
    for tensor, spec in zip(
        tf.nest.flatten(tensors), tf.nest.flatten(specs), strict=True
    ):
        spec = _as_typed(spec)
        tensor = _as_typed(tensor, dtype_hint=spec.dtype)
        dtypes = tf.as_dtype(tensor.dtype), tf.as_dtype(spec.dtype)
        pairs.append(_Pair(spec_shape(tensor), dtypes[0], spec_shape(spec), dtypes[1]))
    return pairs


def _as_typed(value: Any, dtype_hint: Any = None) -> Any:
    """Returns `value`, as a tensor unless it has a shape and a dtype."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return value
    return tf.convert_to_tensor(value, dtype_hint=dtype_hint)


def _table(specs: Any, pairs: Sequence[_Pair | None]) -> str:
    """Returns a line for each pair, with its path in `specs`; skips None."""
    return "\n".join(
        f"  {path or '(the leaf)'}: {pair.dtype.name} {pair.shape} vs. "
        f"{pair.spec_dtype.name} {pair.spec_shape}"
        for (path, _), pair in zip(flatten_with_joined_paths(specs), pairs, strict=True)
        if pair is not None
    )


def _assert_leaves_match(
    tensors: Any,
    others: Any,
    shapes_match: Callable[[tf.TensorShape, tf.TensorShape], bool],
    names: tuple[str, str, str],
) -> None:
    """Raises a ValueError that lists the leaves whose dtypes or shapes differ."""
    caller, name, other_name = names
    message = f"{caller}: {name} and {other_name} do not have matching structures"
    pairs = _pairs(tensors, others, message)

    def differs(pair: _Pair) -> bool:
        same_dtype = pair.dtype == pair.spec_dtype
        return not (same_dtype and shapes_match(pair.shape, pair.spec_shape))

    if any(map(differs, pairs)):
        differences = [pair if differs(pair) else None for pair in pairs]
        raise ValueError(
            f"{caller}: Inconsistent dtypes or shapes between {name} and "
            f"{other_name}.\n{_table(others, differences)}\nCast or reshape {name}, or "
            f"correct {other_name}."
        )


def _outer_ranks(tensors: Any, specs: Any, check_dtypes: bool) -> list[int]:
    """Returns each tensor's number of outer dimensions, which must be equal."""
    pairs = _pairs(tensors, specs, "Tensors and specs do not have matching structures")
    if any(None in (pair.shape.rank, pair.spec_shape.rank) for pair in pairs):
        raise ValueError(
            "All tensors and specs should have ndims defined. Saw tensors vs. specs:\n"
            f"{_table(specs, pairs)}\nSet the shapes with tf.ensure_shape."
        )
    if check_dtypes and any(pair.dtype != pair.spec_dtype for pair in pairs):
        raise TypeError(
            f"Tensor dtypes do not match spec dtypes:\n{_table(specs, pairs)}\nCast "
            "the tensors to the dtypes of their specs."
        )
    if all(pair.spec_shape.is_compatible_with(pair.shape) for pair in pairs):
        return [0] * len(pairs)
    outer_ranks = [pair.shape.rank - pair.spec_shape.rank for pair in pairs]
    fit = all(matching.fits(pair.shape, pair.spec_shape, None) for pair in pairs)
    if len(set(outer_ranks)) > 1 or not fit:
        raise ValueError(
            "Received a mix of batched and unbatched Tensors, or Tensors are not "
            f"compatible with Specs (tensors vs. specs):\n{_table(specs, pairs)}\nGive "
            "every tensor the same outer dimensions, then the shape of its spec."
        )
    return outer_ranks
