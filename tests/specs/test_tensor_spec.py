from collections import namedtuple

import numpy as np
import pytest
import tensorflow as tf

from tfrl.specs import tensor_spec
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec
from tfrl.specs.tensor_spec import BoundedTensorSpec, TensorSpec

Pair = namedtuple("Pair", "left right")

ARRAYS = Pair(
    {"a": ArraySpec((2, 3), np.uint8, "a"), "b": ()},
    [BoundedArraySpec((2,), np.float32, -1, [1, 2], "c")],
)
TENSORS = Pair(
    {"a": TensorSpec((2, 3), tf.uint8, "a"), "b": ()},
    [BoundedTensorSpec((2,), tf.float32, -1, [1, 2], "c")],
)


def test_tensor_spec_is_tensorflows():
    assert TensorSpec is tf.TensorSpec


def test_from_spec_converts_nests_and_keeps_bounds():
    assert tensor_spec.from_spec(ARRAYS) == TENSORS
    assert tensor_spec.from_spec(TENSORS) == TENSORS


def test_from_spec_keeps_other_type_specs():
    ragged = tf.RaggedTensorSpec((None, None), tf.int32)
    assert tensor_spec.from_spec([ragged]) == [ragged]


def test_from_spec_names_what_is_no_spec():
    with pytest.raises(ValueError, match=r"spec: got array.* of type ndarray in the"):
        tensor_spec.from_spec({"a": np.zeros(2)})


@pytest.mark.parametrize(
    "convert", [tensor_spec.to_array_spec, tensor_spec.to_nest_array_spec]
)
def test_to_array_spec_converts_nests_and_keeps_bounds(convert):
    for given in (TENSORS, ARRAYS):
        arrays = convert(given)
        assert arrays == ARRAYS
        assert type(arrays.left["a"]) is ArraySpec
        assert type(arrays.right[0]) is BoundedArraySpec
        assert arrays.right[0].name == "c"


def test_to_array_spec_keeps_unknown_dimensions():
    spec = tensor_spec.to_array_spec(BoundedTensorSpec((None, 2), tf.float32, 0, 1))
    assert spec == BoundedArraySpec((None, 2), np.float32, 0, 1)


def test_kinds_of_specs():
    for make in (ArraySpec, TensorSpec):
        assert tensor_spec.is_discrete(make((), np.int32))
        assert tensor_spec.is_continuous(make((), np.float32))
        assert not tensor_spec.is_discrete(make((), np.bool_))
        assert not tensor_spec.is_continuous(make((), np.int32))
        assert not tensor_spec.is_bounded(make((), np.int32))
    assert tensor_spec.is_continuous(TensorSpec((), tf.bfloat16))
    assert tensor_spec.is_bounded(BoundedTensorSpec((), tf.int32, 0, 1))
    assert tensor_spec.is_bounded(BoundedArraySpec((), np.int32, 0, 1))


def test_add_outer_dims_nest():
    assert tensor_spec.add_outer_dims_nest(TENSORS, (5, None)) == Pair(
        {"a": TensorSpec((5, None, 2, 3), tf.uint8, "a"), "b": ()},
        [BoundedTensorSpec((5, None, 2), tf.float32, -1, [1, 2], "c")],
    )
    sparse = tf.SparseTensorSpec((2,), tf.int32)
    assert tensor_spec.add_outer_dims_nest(sparse, [5]) == tf.SparseTensorSpec(
        (5, 2), tf.int32
    )


def test_add_outer_dims_nest_wants_a_sequence():
    with pytest.raises(
        ValueError, match=r"outer_dims: got 5, expected a tuple or list"
    ):
        tensor_spec.add_outer_dims_nest(TENSORS, 5)


def test_add_outer_dim_is_unknown_by_default():
    spec = TensorSpec((2,), tf.int32, "a")
    assert tensor_spec.add_outer_dim(spec) == TensorSpec((None, 2), tf.int32, "a")
    assert tensor_spec.add_outer_dim(spec, 3) == TensorSpec((3, 2), tf.int32, "a")


def test_remove_outer_dims_undoes_adding():
    batched = tensor_spec.add_outer_dims_nest(TENSORS, (5, 7))
    assert tensor_spec.remove_outer_dims_nest(batched, 2) == TENSORS


def test_remove_outer_dims_takes_the_widest_bounds():
    spec = BoundedTensorSpec((2, 2), tf.int32, [[0, 1], [1, 0]], [[2, 5], [3, 4]], "x")
    assert tensor_spec.remove_outer_dims_nest(spec, 1) == BoundedTensorSpec(
        (2,), tf.int32, 0, [3, 5], "x"
    )


def test_remove_outer_dims_names_specs_with_too_few():
    with pytest.raises(ValueError, match=r"a/0: the shape of spec .* num_outer_dims 2"):
        tensor_spec.remove_outer_dims_nest({"a": [TensorSpec((3,))]}, 2)


def test_with_dtype_fits_the_bounds():
    assert tensor_spec.with_dtype(TENSORS, tf.float32) == Pair(
        {"a": TensorSpec((2, 3), tf.float32, "a"), "b": ()},
        [BoundedTensorSpec((2,), tf.float32, -1, [1, 2], "c")],
    )
    whole = BoundedTensorSpec((), tf.int64)
    assert tensor_spec.with_dtype(whole, tf.int32) == BoundedTensorSpec((), tf.int32)
    wide = BoundedTensorSpec((), tf.float32)
    assert tensor_spec.with_dtype(wide, tf.float16) == BoundedTensorSpec((), tf.float16)


def test_with_dtype_makes_unbounded_specs_of_strings():
    assert tensor_spec.with_dtype(TensorSpec((2,)), tf.string) == TensorSpec(
        (2,), tf.string
    )
