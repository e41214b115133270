import copy
import pickle

import numpy as np
import pytest
import tensorflow as tf

from tfrl.specs import BoundedTensorSpec
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec


def test_repr_is_tf_agents():
    discount = BoundedTensorSpec((), tf.float32, 0, 1, "discount")
    action = BoundedTensorSpec((), tf.int64, 0, 1, "action")
    assert repr(discount) == (
        "BoundedTensorSpec(shape=(), dtype=tf.float32, name='discount', "
        "minimum=array(0., dtype=float32), maximum=array(1., dtype=float32))"
    )
    assert repr(action) == (
        "BoundedTensorSpec(shape=(), dtype=tf.int64, name='action', "
        "minimum=array(0), maximum=array(1))"
    )


def test_from_spec_keeps_bounds_and_name():
    array = BoundedArraySpec((2,), np.float32, -1, [1, 2], "action")
    spec = BoundedTensorSpec.from_spec(array)
    assert spec == BoundedTensorSpec((2,), tf.float32, -1, [1, 2], "action")
    assert BoundedTensorSpec.from_spec(spec) == spec
    assert BoundedTensorSpec.from_spec(spec, "other").name == "other"


def test_from_spec_bounds_by_the_dtype():
    spec = BoundedTensorSpec.from_spec(tf.TensorSpec((2,), tf.int8, "x"))
    assert spec == BoundedTensorSpec((2,), tf.int8, -128, 127, "x")


def test_infinite_bounds_become_finite():
    spec = BoundedTensorSpec((), tf.float32, -np.inf, np.inf)
    assert (spec.minimum, spec.maximum) == (tf.float32.min, tf.float32.max)


@pytest.mark.parametrize(
    ("dtype", "minimum", "maximum", "message"),
    [
        (tf.uint8, -1, 1, r"minimum: got -1, expected numbers within .* of uint8"),
        (tf.int32, 3, 2, r"minimum: got 3 with maximum 2"),
        (tf.float32, 0, [1, 1, 1], r"maximum: got a bound of shape \(3,\)"),
    ],
)
def test_bounds_are_checked(dtype, minimum, maximum, message):
    with pytest.raises(ValueError, match=message):
        BoundedTensorSpec((2,), dtype, minimum, maximum)


def test_equality_counts_name_and_bounds():
    spec = BoundedTensorSpec((2,), tf.int32, 0, 5, "a")
    assert spec == BoundedTensorSpec((2,), tf.int32, [0, 0], 5, "a")
    assert hash(spec) == hash(BoundedTensorSpec((2,), tf.int32, [0, 0], 5, "a"))
    assert spec != BoundedTensorSpec((2,), tf.int32, 0, 5, "b")
    assert spec != BoundedTensorSpec((2,), tf.int32, 0, 4, "a")
    assert spec != tf.TensorSpec((2,), tf.int32, "a")
    assert tf.TensorSpec((2,), tf.int32, "a") != spec
    assert spec != BoundedArraySpec((2,), np.int32, 0, 5, "a")


def test_pickles_and_copies():
    spec = BoundedTensorSpec((None, 2), tf.float32, -1, [1, 2], "a")
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert copy.deepcopy(spec) == spec


def test_is_compatible_with_tensors_as_its_base():
    spec = BoundedTensorSpec((None, 2), tf.float32, -1, 1)
    assert spec.is_compatible_with(tf.zeros((3, 2)))
    assert not spec.is_compatible_with(tf.zeros((3, 3)))
    assert not spec.is_compatible_with(tf.zeros((3, 2), tf.int32))


def test_is_a_leaf_of_nests():
    spec = BoundedTensorSpec((2,), tf.float32, -1, 1)
    nest = {"a": (spec, [spec])}
    assert tf.nest.flatten(nest) == [spec, spec]
    assert tf.nest.flatten(nest, expand_composites=True) == [spec, spec]


def test_input_signature_traces_once_for_any_batch():
    spec = {"x": BoundedTensorSpec((None, 2), tf.float32, -1, 1, "x")}

    @tf.function(input_signature=[spec])
    def double(inputs):
        return inputs["x"] * 2

    np.testing.assert_array_equal(double({"x": tf.ones((1, 2))}), [[2, 2]])
    np.testing.assert_array_equal(double({"x": np.ones((3, 2), np.float32)})[0], [2, 2])
    assert double.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError):
        double({"x": tf.ones((1, 3))})


def test_concrete_function_from_specs():
    double = tf.function(lambda x: x * 2)
    concrete = double.get_concrete_function(BoundedTensorSpec((2,), tf.int32, 0, 5))
    np.testing.assert_array_equal(concrete(tf.constant([1, 2])), [2, 4])
    assert double.experimental_get_tracing_count() == 1


def test_signatures_survive_a_saved_model(tmp_path):
    module = tf.Module()
    module.double = tf.function(
        lambda x: x["x"] * 2,
        input_signature=[{"x": BoundedTensorSpec((2,), tf.int32, 0, 5, "x")}],
    )
    tf.saved_model.save(module, str(tmp_path), signatures=None)
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(loaded.double({"x": tf.constant([1, 2])}), [2, 4])
    # A plain spec in the file: nothing of this library is needed to load it.
    (inputs,), _ = loaded.double.concrete_functions[0].structured_input_signature
    assert type(inputs["x"]) is tf.TensorSpec


def test_element_spec_of_datasets():
    spec = BoundedTensorSpec((2,), tf.float32, 0, 1)
    dataset = tf.data.Dataset.from_generator(
        lambda: iter([np.ones(2, np.float32)] * 4), output_signature=spec
    )
    assert dataset.element_spec == spec
    assert dataset.concatenate(dataset).element_spec == spec
    assert dataset.batch(2).element_spec == tf.TensorSpec((None, 2), tf.float32)
    assert len(list(dataset.batch(2).unbatch())) == 4


def test_common_supertype_drops_bounds_that_differ():
    spec = BoundedTensorSpec((2,), tf.float32, 0, 1)
    plain = tf.TensorSpec((2,), tf.float32)
    other = BoundedTensorSpec((2,), tf.float32, 0, [1, 2])
    assert spec.most_specific_common_supertype([spec]) is spec
    assert spec.most_specific_common_supertype([other]) == plain
    assert spec.most_specific_common_supertype([plain]) == plain
    longer = tf.TensorSpec((3,), tf.float32)
    assert spec.most_specific_common_supertype([longer]).shape == [None]
    sparse = tf.SparseTensorSpec((2,), tf.float32)
    assert spec.most_specific_common_supertype([sparse]) is None


def test_branches_with_different_bounds_join():
    datasets = [
        tf.data.Dataset.from_generator(
            lambda: iter([np.ones(2, np.float32)]),
            output_signature=BoundedTensorSpec((2,), tf.float32, 0, high),
        )
        for high in (1, 2)
    ]
    joined = datasets[0].concatenate(datasets[1])
    assert joined.element_spec == tf.TensorSpec((2,), tf.float32)


def test_conversion_of_array_specs_checks_the_dtype():
    with pytest.raises(TypeError, match="use ArraySpec, without bounds"):
        BoundedTensorSpec.from_spec(ArraySpec((), "U3"))
