"""Re-exports the helpers for nests of tensors and nests of specs.

`nests.structure` compares and names structures, `nests.checks` compares tensors with
specs, and `nests.batching` adds and removes outer dimensions.
"""

import tensorflow as tf

from tfrl.utils.nests.batching import (
    batch_nested_array,
    batch_nested_tensors,
    flatten_and_check_shape_nested_specs,
    flatten_multi_batched_nested_tensors,
    get_outer_array_shape,
    remove_singleton_batch_spec_dim,
    split_nested_tensors,
    stack_nested_arrays,
    stack_nested_tensors,
    tile_batch,
    unbatch_nested_array,
    unbatch_nested_tensors,
    unbatch_nested_tensors_to_arrays,
    unstack_nested_arrays,
    unstack_nested_arrays_into_flat_items,
    unstack_nested_tensors,
    where,
)
from tfrl.utils.nests.checks import (
    assert_matching_dtypes_and_inner_shapes,
    assert_tensors_matching_dtypes_and_shapes,
    assert_value_spec,
    get_outer_rank,
    get_outer_shape,
    is_batched_nested_tensors,
    spec_shape,
)
from tfrl.utils.nests.structure import (
    assert_same_structure,
    assert_shallow_structure,
    fast_map_structure,
    fast_map_structure_flatten,
    flatten_up_to,
    flatten_with_joined_paths,
    flatten_with_tuple_paths,
    has_tensors,
    map_structure_up_to,
    map_structure_with_paths,
    prune_extra_keys,
)

__all__ = [
    "assert_matching_dtypes_and_inner_shapes",
    "assert_same_structure",
    "assert_shallow_structure",
    "assert_tensors_matching_dtypes_and_shapes",
    "assert_value_spec",
    "batch_nested_array",
    "batch_nested_tensors",
    "fast_map_structure",
    "fast_map_structure_flatten",
    "flatten_and_check_shape_nested_specs",
    "flatten_multi_batched_nested_tensors",
    "flatten_up_to",
    "flatten_with_joined_paths",
    "flatten_with_tuple_paths",
    "get_outer_array_shape",
    "get_outer_rank",
    "get_outer_shape",
    "has_tensors",
    "is_batched_nested_tensors",
    "is_nested",
    "map_structure_up_to",
    "map_structure_with_paths",
    "prune_extra_keys",
    "remove_singleton_batch_spec_dim",
    "spec_shape",
    "split_nested_tensors",
    "stack_nested_arrays",
    "stack_nested_tensors",
    "tile_batch",
    "unbatch_nested_array",
    "unbatch_nested_tensors",
    "unbatch_nested_tensors_to_arrays",
    "unstack_nested_arrays",
    "unstack_nested_arrays_into_flat_items",
    "unstack_nested_tensors",
    "where",
]

is_nested = tf.nest.is_nested
