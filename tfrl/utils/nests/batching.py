"""Adding, removing, stacking and splitting the outer dimensions of nests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import internals
from tfrl.utils import composite
from tfrl.utils.nests.checks import get_outer_rank, spec_shape
from tfrl.utils.nests.structure import assert_same_structure


def batch_nested_tensors(tensors: Any, specs: Any = None) -> Any:
    """Adds a batch dimension of 1 to each tensor that lacks it.

    Without `specs`, every tensor gets a batch dimension.

    Raises:
      ValueError: If a tensor has neither its spec's shape nor one dimension more.
    """
    if specs is None:
        return tf.nest.map_structure(lambda t: composite.expand_dims(t, 0), tensors)
    return tf.nest.pack_sequence_as(
        tensors,
        [
            tensor if batched else composite.expand_dims(tensor, 0)
            for tensor, batched in _flat_with_batched(tensors, specs)
        ],
    )


def unbatch_nested_tensors(tensors: Any, specs: Any = None) -> Any:
    """Removes the batch dimension of 1 from each tensor that has it.

    Without `specs`, every tensor must have the dimension.

    Raises:
      ValueError: If a tensor has neither its spec's shape nor one dimension more, or if
        its batch dimension is not 1.
    """
    if specs is None:
        return tf.nest.map_structure(lambda t: composite.squeeze(t, 0), tensors)
    return tf.nest.pack_sequence_as(
        tensors,
        [
            composite.squeeze(tensor, 0) if batched else tensor
            for tensor, batched in _flat_with_batched(tensors, specs)
        ],
    )


def split_nested_tensors(
    tensors: Any, specs: Any, num_or_size_splits: Any
) -> list[Any]:
    """Splits batched tensors along the batch dimension into a list of nests.

    Args:
      tensors: A nest of `[B, ...]`.
      specs: A nest of specs, without the batch dimension.
      num_or_size_splits: As for `tf.split`; must be a number for sparse tensors.

    Raises:
      ValueError: If a tensor has no batch dimension, or if a sparse tensor should be
        split by sizes.
    """

    def split(tensor: Any) -> Any:
        if not isinstance(tensor, tf.SparseTensor):
            return tf.split(tensor, num_or_size_splits)
        if not isinstance(num_or_size_splits, int):
            raise ValueError(
                f"num_or_size_splits: got {num_or_size_splits} for a SparseTensor, "
                "expected a number; sparse tensors split into equal parts only."
            )
        return tf.sparse.split(tensor, num_split=num_or_size_splits, axis=0)

    flat = _flat_batched(tensors, specs, "split")
    return _transpose_lists(tensors, [split(tensor) for tensor in flat])


def unstack_nested_tensors(tensors: Any, specs: Any) -> list[Any]:
    """Splits a nest of `[B, ...]` into B nests without the batch dimension.

    Raises:
      ValueError: If a tensor has no batch dimension, or its size is unknown.
    """
    flat = _flat_batched(tensors, specs, "unstack")
    return _transpose_lists(tensors, [composite.unstack(tensor) for tensor in flat])


def stack_nested_tensors(tensors: Sequence[Any], axis: int = 0) -> Any:
    """Stacks a list of nests into one, with a new dimension at `axis`."""
    return tf.nest.map_structure(
        lambda *leaves: composite.stack(leaves, axis), *tensors
    )


def flatten_multi_batched_nested_tensors(
    tensors: Any, specs: Any
) -> tuple[Any, tf.Tensor]:
    """Merges all outer dimensions into one.

    Args:
      tensors: A nest of tensors with the same outer dimensions.
      specs: A nest of specs, without outer dimensions.

    Returns:
      The nest with one batch dimension, and its former outer shape, int64.

    Raises:
      ValueError: If the tensors do not fit the specs or differ in outer dimensions.
    """
    outer_rank = get_outer_rank(tensors, specs)
    flat = tf.nest.flatten(tensors)
    if not flat:
        return tensors, tf.constant([], dtype=tf.int64)
    static = spec_shape(flat[0])[:outer_rank]
    batch_dims = (
        tf.constant(static.as_list(), dtype=tf.int64)
        if static.is_fully_defined()
        else composite.shape(flat[0])[:outer_rank]
    )
    merged = tf.nest.map_structure(
        lambda tensor: composite.flatten_outer(tensor, outer_rank), tensors
    )
    return merged, batch_dims


def flatten_and_check_shape_nested_specs(
    specs: Any, reference_specs: Any
) -> tuple[list[Any], list[tf.TensorShape]]:
    """Returns the flat `specs`, and the flat shapes of `reference_specs`.

    Raises:
      ValueError: If structures or shapes differ.
    """
    try:
        pairs = _flat_with_outer_rank(specs, reference_specs, allowed=(0,))
    except ValueError as error:
        raise ValueError(
            "specs must be compatible with reference_specs; instead got "
            f"specs={specs}, reference_specs={reference_specs}. {error}"
        ) from error
    shapes = [spec_shape(s) for s in tf.nest.flatten(reference_specs)]
    return [spec for spec, _ in pairs], shapes


def where(condition: Any, true_outputs: Any, false_outputs: Any) -> Any:
    """Applies `tf.where` to nests, with a condition on the leading dimensions.

    Args:
      condition: bool `[B, ...]`; its shape is a prefix of every leaf's.
      true_outputs: A nest of tensors.
      false_outputs: A nest of the same structure.

    Raises:
      ValueError: If the structures differ, or a leaf has a lower rank than `condition`.
    """
    assert_same_structure(
        true_outputs,
        false_outputs,
        message='"true_outputs" and "false_outputs" structures do not match',
    )
    condition = tf.convert_to_tensor(condition)

    def where_leaf(true_leaf: Any, false_leaf: Any) -> Any:
        rank = len(true_leaf.shape)
        if rank < condition.shape.rank:
            raise ValueError(
                f"condition: got rank {condition.shape.rank} (shape {condition.shape}) "
                f"for a leaf of shape {true_leaf.shape}, expected at most its rank; "
                "reduce the condition to the leading dimensions."
            )
        return composite.where(condition, true_leaf, false_leaf)

    true_outputs, false_outputs = tf.nest.map_structure(
        composite.as_tensor, (true_outputs, false_outputs)
    )
    return tf.nest.map_structure(where_leaf, true_outputs, false_outputs)


def tile_batch(tensors: Any, multiplier: Any) -> Any:
    """Repeats each entry of the batch: `[B, ...]` to `[B * multiplier, ...]`.

    The copies of an entry stand side by side: `t[0], t[0], ..., t[1], t[1], ...`.

    Raises:
      ValueError: If a tensor has no batch dimension.
    """

    def tile(tensor: Any) -> Any:
        tensor = composite.as_tensor(tensor)
        if not tensor.shape.rank:
            raise ValueError(
                f"tile_batch: got a tensor of shape {tensor.shape}, expected [B, ...] "
                "of known rank; add the batch dimension with batch_nested_tensors."
            )
        return composite.repeat(tensor, multiplier)

    return tf.nest.map_structure(tile, tensors)


def remove_singleton_batch_spec_dim(spec: tf.TypeSpec, outer_ndim: int) -> tf.TypeSpec:
    """Removes up to `outer_ndim` leading dimensions of size 1 from a spec.

    Stops at the first dimension that is not 1: an LSTM layer, say, may take
    `[1, 1, n]` and emit `[1, m]`.

    Raises:
      ValueError: If the spec has no shape.
    """
    if getattr(spec, "shape", None) is None:
        raise ValueError(
            f"spec: got {spec}, which lacks a shape; expected a tensor spec of known "
            "rank to remove the batch dimension from."
        )
    for _ in range(outer_ndim):
        if spec.shape.rank == 0 or spec.shape[0] != 1:
            break
        spec = internals.unbatched(spec)
    return spec


def batch_nested_array(nested_array: Any) -> Any:
    """Adds a batch dimension of 1 to every array."""
    return tf.nest.map_structure(lambda x: np.expand_dims(x, 0), nested_array)


def unbatch_nested_array(nested_array: Any) -> Any:
    """Removes the batch dimension of 1 from every array."""
    return tf.nest.map_structure(lambda x: np.squeeze(x, 0), nested_array)


def unbatch_nested_tensors_to_arrays(nested_tensors: Any) -> Any:
    """Turns eager tensors `[1, ...]` into arrays without the batch dimension."""
    return tf.nest.map_structure(lambda t: np.squeeze(t.numpy(), 0), nested_tensors)


def unstack_nested_arrays(nested_array: Any) -> list[Any]:
    """Splits a nest of arrays `[B, ...]` into B nests of views."""
    return [
        tf.nest.pack_sequence_as(nested_array, item)
        for item in unstack_nested_arrays_into_flat_items(nested_array)
    ]


def unstack_nested_arrays_into_flat_items(nested_array: Any) -> list[tuple[Any, ...]]:
    """Splits a nest of arrays `[B, ...]` into B flat tuples of views."""
    return list(zip(*tf.nest.flatten(nested_array), strict=True))


def stack_nested_arrays(nested_arrays: Sequence[Any]) -> Any:
    """Stacks a list of nests of arrays into one nest of `[B, ...]`."""
    flat = [tf.nest.flatten(nest) for nest in nested_arrays]
    return tf.nest.pack_sequence_as(
        nested_arrays[0], [np.stack(leaves) for leaves in zip(*flat, strict=True)]
    )


def get_outer_array_shape(nested_array: Any, spec: Any) -> tuple[int, ...]:
    """Returns the outer shape of the first array, beyond the shape of its spec."""
    array = tf.nest.flatten(nested_array)[0]
    return array.shape[: array.ndim - len(tf.nest.flatten(spec)[0].shape)]


def _flat_with_outer_rank(
    tensors: Any, specs: Any, allowed: tuple[int, ...]
) -> list[tuple[Any, int]]:
    """Returns each tensor with its number of outer dimensions, one of `allowed`."""
    assert_same_structure(
        tensors, specs, message="Tensors and specs do not have matching structures"
    )
    result = []
    for tensor, spec in zip(
        tf.nest.flatten(tensors), tf.nest.flatten(specs), strict=True
    ):
        shape, inner = spec_shape(tensor), spec_shape(spec)
        outer_rank = shape.rank - inner.rank
        if outer_rank not in allowed or not inner.is_compatible_with(
            shape[outer_rank:]
        ):
            raise ValueError(
                "Tensor does not have the correct dimensions: got shape "
                f"{shape}, expected {inner} after {' or '.join(map(str, allowed))} "
                "outer dimensions; reshape the tensor or correct its spec."
            )
        result.append((tensor, outer_rank))
    return result


def _flat_with_batched(tensors: Any, specs: Any) -> list[tuple[Any, bool]]:
    pairs = _flat_with_outer_rank(tensors, specs, allowed=(0, 1))
    return [(tensor, outer_rank == 1) for tensor, outer_rank in pairs]


def _flat_batched(tensors: Any, specs: Any, verb: str) -> list[Any]:
    pairs = _flat_with_batched(tensors, specs)
    if not all(batched for _, batched in pairs):
        raise ValueError(
            f"Can only {verb} tensors with a batch dimension, got shapes "
            f"{[str(spec_shape(t)) for t, _ in pairs]}; add it with "
            "batch_nested_tensors."
        )
    return [tensor for tensor, _ in pairs]


def _transpose_lists(structure: Any, lists: Sequence[Sequence[Any]]) -> list[Any]:
    """Turns a list for each leaf into a list of nests like `structure`."""
    return [
        tf.nest.pack_sequence_as(structure, leaves)
        for leaves in zip(*lists, strict=True)
    ]
