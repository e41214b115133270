"""Nests against specs: structure, batching, stacking, selecting."""

from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
import tensorflow as tf

from tfrl.specs import array_spec
from tfrl.utils import nest_utils

Pair = namedtuple("Pair", ["a", "b"])

SPECS = {"x": tf.TensorSpec([2], tf.float32), "y": (tf.TensorSpec([], tf.int32),)}


def nest(*outer):
    """Tensors of SPECS with the given outer dimensions."""
    return {"x": tf.zeros([*outer, 2]), "y": (tf.zeros(outer, tf.int32),)}


def sparse(*shape):
    return tf.sparse.from_dense(tf.ones(shape))


# Structure


def test_a_shallow_structure_is_one_whose_leaves_may_be_nests():
    nest_utils.assert_shallow_structure({"x": 1}, {"x": [1, (2, 3)]})
    nest_utils.assert_shallow_structure([1], (2,), check_types=False)
    with pytest.raises(TypeError):
        nest_utils.assert_shallow_structure([1], (2,))
    with pytest.raises(ValueError, match="same"):
        nest_utils.assert_shallow_structure({"x": [1, 2]}, {"x": [1]})
    assert nest_utils.is_nested({})
    assert not nest_utils.is_nested(np.zeros(2))


def test_error_shows_both_structures_and_the_paths_that_differ():
    with pytest.raises(ValueError, match="Mine") as error:
        nest_utils.assert_same_structure(
            {"a": 1, "b": 2}, {"a": 1, "c": [3]}, message="Mine"
        )
    text = str(error.value)
    assert "{'a': ., 'b': .}\nvs.\n  {'a': ., 'c': [.]}" in text
    assert "only in the first: ['b']; only in the second: ['c/0']" in text


def test_other_container_is_a_type_error_unless_types_are_not_checked():
    with pytest.raises(TypeError, match="do not match"):
        nest_utils.assert_same_structure([1], (1,))
    nest_utils.assert_same_structure([1], (1,), check_types=False)


def test_leaf_may_stand_for_a_nest_if_shallow_is_allowed():
    nest_utils.assert_same_structure({"a": 1}, {"a": [1, 2]}, allow_shallow_nest1=True)
    with pytest.raises(ValueError, match="do not match"):
        nest_utils.assert_same_structure({"a": 1}, {"a": [1, 2]})
    with pytest.raises(ValueError, match="do not match"):
        nest_utils.assert_same_structure(
            {"a": [1]}, {"a": [1, 2]}, allow_shallow_nest1=True
        )


def test_paths_are_in_the_order_of_flatten():
    structure = {"b": Pair(a=1, b=[2, 3]), "a": 4}
    assert nest_utils.flatten_with_joined_paths(structure) == [
        ("a", 4),
        ("b/a", 1),
        ("b/b/0", 2),
        ("b/b/1", 3),
    ]
    assert tf.nest.flatten(structure) == [4, 1, 2, 3]


def test_components_of_a_sparse_tensor_have_paths_of_their_own():
    paths = nest_utils.flatten_with_joined_paths(
        {"s": sparse(2, 2)}, expand_composites=True
    )
    assert [path for path, _ in paths] == ["s/0", "s/1", "s/2"]


def test_map_structure_with_paths():
    mapped = nest_utils.map_structure_with_paths(
        lambda path, x, y: (path, x + y), {"a": [1]}, {"a": [2]}
    )
    assert mapped == {"a": [("a/0", 3)]}


def test_fast_map_structure():
    assert nest_utils.fast_map_structure(
        lambda x, y: x + y, Pair(1, [2]), Pair(3, [4])
    ) == Pair(4, [6])


def test_has_tensors():
    assert nest_utils.has_tensors({"a": np.zeros(1)}, [tf.zeros(1)])
    assert nest_utils.has_tensors(sparse(1, 1))
    assert not nest_utils.has_tensors({"a": np.zeros(1)}, 1.0, ())


# Pruning


@pytest.mark.parametrize(
    ("narrow", "wide", "pruned"),
    [
        ([{"a": 1}], [{"a": "a", "b": "b"}], [{"a": "a"}]),
        (Pair({"a": 1}, 2), Pair({"a": 3, "b": 4}, 5), Pair({"a": 3}, 5)),
        ([{"c": 1}], [{"a": "a"}], [{"a": "a"}]),
        ("leaf", [{"a": 1}], [{"a": 1}]),
        ({"a": {"b": 1}, "d": 0}, {"a": {"b": 2, "c": 3}, "d": [4]}, None),
        ((), {"a": 1}, ()),
        ({"a": ()}, {"a": {"b": 1}}, {"a": ()}),
        ([1, 2], [{"a": 1}], [{"a": 1}]),
    ],
)
def test_prune_extra_keys(narrow, wide, pruned):
    expected = {"a": {"b": 2}, "d": [4]} if pruned is None else pruned
    assert nest_utils.prune_extra_keys(narrow, wide) == expected


def test_pruning_keeps_the_type_of_the_mapping():
    ordered = nest_utils.prune_extra_keys({"a": 1}, OrderedDict(b=1, a=2))
    assert ordered == OrderedDict(a=2)
    assert type(ordered) is OrderedDict
    default = nest_utils.prune_extra_keys({"a": 1}, defaultdict(int, a=2, b=3))
    assert default == {"a": 2}
    assert default.default_factory is int


def test_pruning_sees_through_the_wrappers_of_modules():
    module = tf.Module()
    module.wide = {"a": 1, "b": (2,)}
    assert nest_utils.prune_extra_keys({"a": 0}, module.wide) == {"a": 1}


def test_pruning_takes_namedtuples_of_the_same_fields():
    other = namedtuple("Other", ["a", "b"])
    assert nest_utils.prune_extra_keys(other({}, 0), Pair({"x": 1}, 2)) == Pair({}, 2)


# Checks


def test_batched_is_all_or_nothing():
    assert nest_utils.is_batched_nested_tensors(nest(3), SPECS)
    assert not nest_utils.is_batched_nested_tensors(nest(), SPECS)
    assert nest_utils.is_batched_nested_tensors(nest(3, 4), SPECS, num_outer_dims=2)
    with pytest.raises(ValueError, match="mix of batched and unbatched") as error:
        nest_utils.is_batched_nested_tensors({**nest(3), "y": nest()["y"]}, SPECS)
    assert "x: float32 (3, 2) vs. float32 (2,)" in str(error.value)
    assert "y/0: int32 () vs. int32 ()" in str(error.value)


def test_another_number_of_outer_dimensions_is_not_batched():
    assert not nest_utils.is_batched_nested_tensors(nest(3, 4), SPECS)


def test_unbatched_is_looked_at_first():
    spec = tf.TensorSpec([None, 2], tf.float32)
    assert not nest_utils.is_batched_nested_tensors(tf.zeros([3, 2]), spec)


def test_dtypes_are_compared_unless_told_not_to():
    tensors = {**nest(3), "x": tf.zeros([3, 2], tf.float64)}
    with pytest.raises(TypeError, match="dtypes do not match") as error:
        nest_utils.is_batched_nested_tensors(tensors, SPECS)
    assert "x: float64 (3, 2) vs. float32 (2,)" in str(error.value)
    assert nest_utils.is_batched_nested_tensors(tensors, SPECS, check_dtypes=False)


def test_extra_fields_are_ignored_if_allowed():
    tensors = {**nest(3), "z": tf.zeros([])}
    assert nest_utils.is_batched_nested_tensors(tensors, SPECS, allow_extra_fields=True)
    with pytest.raises(ValueError, match="matching structures"):
        nest_utils.is_batched_nested_tensors(tensors, SPECS)


def test_unknown_rank_is_an_error():
    @tf.function(input_signature=[tf.TensorSpec(None)])
    def check(x):
        return nest_utils.get_outer_rank(x, tf.TensorSpec([2]))

    with pytest.raises(ValueError, match=r"ndims defined.*\n.*<unknown>.*\n.*ensure"):
        check.get_concrete_function()


def test_arrays_and_array_specs_are_compared_as_well():
    spec = array_spec.ArraySpec((2,), np.float32)
    array = np.zeros((3, 2), np.float32)
    assert nest_utils.is_batched_nested_tensors(array, spec)
    assert nest_utils.get_outer_array_shape(array, spec) == (3,)


def test_outer_rank_and_shape():
    assert nest_utils.get_outer_rank(nest(3, 4), SPECS) == 2
    assert nest_utils.get_outer_rank(nest(), SPECS) == 0
    assert nest_utils.get_outer_rank((), ()) == 0
    assert nest_utils.get_outer_shape(nest(3, 4), SPECS).numpy().tolist() == [3, 4]
    assert nest_utils.get_outer_shape(nest(), SPECS).shape == (0,)
    sparse_spec = tf.SparseTensorSpec([3], tf.float32)
    assert nest_utils.get_outer_shape(sparse(2, 3), sparse_spec).numpy() == [2]


def test_inner_shapes_and_dtypes_must_match():
    names = "agent", "tensors", "specs"
    nest_utils.assert_matching_dtypes_and_inner_shapes(nest(5, 4), SPECS, *names)
    with pytest.raises(ValueError, match=r"agent: Inconsistent dtypes or shapes") as e:
        nest_utils.assert_matching_dtypes_and_inner_shapes(
            {**nest(), "x": tf.zeros([3])}, SPECS, *names
        )
    assert "x: float32 (3,) vs. float32 (2,)" in str(e.value)
    assert "y" not in str(e.value).split("specs.\n")[1].split("\nCast")[0]


def test_python_numbers_take_the_dtype_of_their_spec():
    nest_utils.assert_matching_dtypes_and_inner_shapes(
        1, tf.TensorSpec([], tf.int64), "agent", "tensors", "specs"
    )


def test_dtypes_and_ranks_of_two_nests_must_match():
    names = "agent", "state", "new_state"
    nest_utils.assert_tensors_matching_dtypes_and_shapes(nest(3), nest(4), *names)
    with pytest.raises(ValueError, match="between state and new_state"):
        nest_utils.assert_tensors_matching_dtypes_and_shapes(nest(3), nest(), *names)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (tf.TensorSpec([2], tf.float32), "emits multiple values"),
        (tf.TensorSpec([1], tf.int32), "not real numbers"),
        ("distribution", "not tensors"),
    ],
)
def test_value_networks_emit_one_real_number(spec, problem):
    nest_utils.assert_value_spec([tf.TensorSpec([1], tf.float32)], "ValueNet")
    with pytest.raises(ValueError, match=f"ValueNet: output 'v' .*{problem}.*use a"):
        nest_utils.assert_value_spec({"v": spec}, "ValueNet")


# Batching


def test_batch_is_added_where_it_lacks_and_removed_where_it_is():
    mixed = {**nest(1), "y": nest()["y"]}
    batched = nest_utils.batch_nested_tensors(mixed, SPECS)
    assert nest_utils.get_outer_rank(batched, SPECS) == 1
    unbatched = nest_utils.unbatch_nested_tensors(mixed, SPECS)
    assert nest_utils.get_outer_rank(unbatched, SPECS) == 0


def test_without_specs_every_tensor_is_batched_and_unbatched():
    batched = nest_utils.batch_nested_tensors({"s": sparse(3), "d": tf.zeros([2])})
    assert batched["s"].shape == (1, 3)
    assert batched["d"].shape == (1, 2)
    unbatched = nest_utils.unbatch_nested_tensors(batched)
    np.testing.assert_array_equal(tf.sparse.to_dense(unbatched["s"]), [1, 1, 1])


def test_two_outer_dimensions_cannot_be_batched():
    with pytest.raises(ValueError, match=r"got shape \(3, 4, 2\), expected \(2,\)"):
        nest_utils.batch_nested_tensors(nest(3, 4), SPECS)


def test_unbatching_a_larger_batch_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError):
        nest_utils.unbatch_nested_tensors(nest(3), SPECS)


def test_split_and_unstack():
    specs = {"d": tf.TensorSpec([2]), "s": tf.SparseTensorSpec([3])}
    tensors = {"d": tf.reshape(tf.range(8.0), [4, 2]), "s": sparse(4, 3)}
    parts = nest_utils.split_nested_tensors(tensors, specs, 2)
    np.testing.assert_array_equal(parts[1]["d"], [[4, 5], [6, 7]])
    assert parts[1]["s"].shape == (2, 3)
    rows = nest_utils.unstack_nested_tensors(tensors["d"], specs["d"])
    np.testing.assert_array_equal(rows[3], [6, 7])
    with pytest.raises(ValueError, match=r"num_or_size_splits: got .* a SparseTensor"):
        nest_utils.split_nested_tensors(tensors, specs, [1, 3])
    with pytest.raises(ValueError, match="Can only unstack tensors with a batch"):
        nest_utils.unstack_nested_tensors(nest(), SPECS)


def test_stack_is_the_inverse_of_unstack():
    rows = [{"a": tf.constant([1.0, 2.0])}, {"a": tf.constant([3.0, 4.0])}]
    np.testing.assert_array_equal(
        nest_utils.stack_nested_tensors(rows)["a"], [[1, 2], [3, 4]]
    )
    np.testing.assert_array_equal(
        nest_utils.stack_nested_tensors(rows, axis=1)["a"], [[1, 3], [2, 4]]
    )


def test_outer_dimensions_are_merged_into_one():
    tensors = {"s": sparse(3, 4, 2), "x": tf.zeros([3, 4, 2])}
    specs = {"s": tf.SparseTensorSpec([2]), "x": tf.TensorSpec([2])}
    flat, dims = nest_utils.flatten_multi_batched_nested_tensors(tensors, specs)
    assert flat["x"].shape == (12, 2)
    assert flat["s"].shape == (12, 2)
    np.testing.assert_array_equal(dims, [3, 4])


def test_merging_unknown_dimensions():
    @tf.function(input_signature=[tf.TensorSpec([None, None, 2])])
    def merge(x):
        flat, dims = nest_utils.flatten_multi_batched_nested_tensors(
            x, tf.TensorSpec([2])
        )
        assert flat.shape.as_list() == [None, 2]
        return flat, dims

    flat, dims = merge(tf.zeros([3, 4, 2]))
    assert flat.shape == (12, 2)
    np.testing.assert_array_equal(dims, [3, 4])


def test_specs_are_compared_with_their_reference():
    flat, shapes = nest_utils.flatten_and_check_shape_nested_specs(SPECS, SPECS)
    assert flat == tf.nest.flatten(SPECS)
    assert [s.as_list() for s in shapes] == [[2], []]
    with pytest.raises(ValueError, match="specs must be compatible with reference"):
        nest_utils.flatten_and_check_shape_nested_specs(
            tf.TensorSpec([3]), tf.TensorSpec([2])
        )


def test_where_selects_rows_whatever_the_rank_of_the_leaf():
    true = {"a": tf.ones([2]), "b": (tf.ones([2, 3]),)}
    false = {"a": tf.zeros([2]), "b": (tf.zeros([2, 3]),)}
    chosen = nest_utils.where(tf.constant([True, False]), true, false)
    np.testing.assert_array_equal(chosen["a"], [1, 0])
    np.testing.assert_array_equal(chosen["b"][0], [[1, 1, 1], [0, 0, 0]])
    assert nest_utils.where([True], (), ()) == ()


def test_sparse_and_ragged_leaves_are_batched_with_dense_ones():
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
    tensors = {"d": tf.zeros([2]), "r": ragged, "s": sparse(2, 3)}
    specs = {
        "d": tf.TensorSpec([]),
        "r": tf.TensorSpec([None]),
        "s": tf.SparseTensorSpec([3]),
    }
    assert nest_utils.is_batched_nested_tensors(tensors, specs)
    assert nest_utils.get_outer_shape({"r": ragged}, {"r": specs["r"]}).numpy() == [2]

    rows = nest_utils.unstack_nested_tensors(tensors, specs)
    assert [row["r"].shape for row in rows] == [[1], [2]]
    rows = [{"d": row["d"], "s": row["s"]} for row in rows]
    again = nest_utils.stack_nested_tensors(rows)
    np.testing.assert_array_equal(tf.sparse.to_dense(again["s"]), np.ones([2, 3]))

    tiled = nest_utils.tile_batch(tensors, 3)
    assert {key: t.shape[0] for key, t in tiled.items()} == {"d": 6, "r": 6, "s": 6}

    double = {"d": tf.ones([2]), "r": ragged * 2, "s": tensors["s"] * 2.0}
    chosen = nest_utils.where([True, False], tensors, double)
    np.testing.assert_array_equal(chosen["d"], [0, 1])
    assert chosen["r"].to_list() == [[1], [4, 6]]
    np.testing.assert_array_equal(
        tf.sparse.to_dense(chosen["s"]), [[1, 1, 1], [2, 2, 2]]
    )


def test_outer_dimensions_of_ragged_leaves_are_merged():
    ragged = tf.ragged.constant([[[1], [2, 3]], [[], [4]]])
    ragged = tf.RaggedTensor.from_uniform_row_length(ragged.values, 2)
    tensors = {"d": tf.zeros([2, 2]), "r": ragged}
    specs = {"d": tf.TensorSpec([]), "r": tf.TensorSpec([None], tf.int32)}
    flat, dims = nest_utils.flatten_multi_batched_nested_tensors(tensors, specs)
    assert flat["r"].to_list() == [[1], [2, 3], [], [4]]
    np.testing.assert_array_equal(dims, [2, 2])


def test_where_by_a_condition_of_higher_rank_is_an_error():
    with pytest.raises(ValueError, match=r"condition: got rank 2 .* leaf of shape"):
        nest_utils.where([[True]], tf.ones([1]), tf.zeros([1]))


def test_tiled_entries_stand_side_by_side():
    tiled = nest_utils.tile_batch({"a": tf.constant([[1, 2], [3, 4]])}, 2)["a"]
    np.testing.assert_array_equal(tiled, [[1, 2], [1, 2], [3, 4], [3, 4]])
    with pytest.raises(ValueError, match="tile_batch: got a tensor of shape"):
        nest_utils.tile_batch(tf.constant(1), 2)


def test_singleton_dimensions_are_removed_from_a_spec():
    remove = nest_utils.remove_singleton_batch_spec_dim
    spec = tf.TensorSpec([1, 1, 5], tf.float32)
    assert remove(spec, 2).shape == (5,)
    assert remove(spec, 1).shape == (1, 5)
    assert remove(tf.TensorSpec([1, 5]), 2).shape == (5,)
    assert remove(tf.TensorSpec([1]), 3).shape == ()
    with pytest.raises(ValueError, match="lacks a shape"):
        remove(tf.OptionalSpec(spec), 1)


def test_arrays_are_batched_stacked_and_unstacked():
    rows = [Pair(np.array(1), [np.array([2, 3])]), Pair(np.array(4), [np.ones(2)])]
    stacked = nest_utils.stack_nested_arrays(rows)
    np.testing.assert_array_equal(stacked.a, [1, 4])
    assert stacked.b[0].shape == (2, 2)
    again = nest_utils.unstack_nested_arrays(stacked)
    assert isinstance(again[1], Pair)
    np.testing.assert_array_equal(again[1].b[0], [1, 1])
    flat = nest_utils.unstack_nested_arrays_into_flat_items(stacked)
    assert len(flat) == 2
    assert flat[1][0] == 4
    batched = nest_utils.batch_nested_array(rows[0])
    assert batched.a.shape == (1,)
    assert nest_utils.unbatch_nested_array(batched).a == 1
    unbatched = nest_utils.unbatch_nested_tensors_to_arrays(nest(1))
    assert isinstance(unbatched["x"], np.ndarray)
    assert unbatched["x"].shape == (2,)
