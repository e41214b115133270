"""Variables that hold values of any dtype, for any device."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import stored_values

EXTREMES = np.array([[-(2**31), -1, 0], [1, 7, 2**31 - 1]], np.int32)
DTYPES = [tf.bool, tf.int32, tf.int64, tf.uint8, tf.uint32, tf.float32, tf.bfloat16]


def test_only_int32_is_stored_in_another_dtype():
    stored = {dtype: stored_values.stored_dtype(dtype) for dtype in DTYPES}
    assert stored.pop(tf.int32) == tf.uint32
    assert all(dtype == of for dtype, of in stored.items())


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_variable_begins_with_zeros_and_is_not_trained(dtype):
    variable = stored_values.zeros([2, 3], dtype, "named")
    assert (variable.name, variable.trainable) == ("named:0", False)
    values = stored_values.read(variable, dtype)
    assert (values.dtype, values.shape) == (dtype, [2, 3])
    assert not tf.cast(values, tf.int32).numpy().any()


@pytest.mark.parametrize("jit_compile", [False, True])
def test_values_are_read_as_they_were_assigned(jit_compile):
    variable = stored_values.zeros([2, 3], tf.int32)

    @tf.function(jit_compile=jit_compile)
    def run(values):
        stored_values.assign(variable, values)
        return stored_values.read(variable, tf.int32)

    np.testing.assert_array_equal(run(EXTREMES), EXTREMES)


def test_a_checkpoint_holds_the_bits(tmp_path):
    old, new = (stored_values.zeros([2, 3], tf.int32) for _ in range(2))
    stored_values.assign(old, tf.constant(EXTREMES))
    path = tf.train.Checkpoint(values=old).write(str(tmp_path / "saved"))
    tf.train.Checkpoint(values=new).read(path).assert_consumed()
    np.testing.assert_array_equal(stored_values.read(new, tf.int32), EXTREMES)


def test_a_nest_is_read_as_it_was_assigned():
    specs = {"a": tf.TensorSpec([None, 3], tf.int32), "b": (tf.TensorSpec([]),)}
    nest = stored_values.StoredNest(specs)
    assert nest.read()["a"].shape == [0, 3]
    nest.assign({"a": EXTREMES, "b": (2.5,)})
    read = nest.read()
    np.testing.assert_array_equal(read["a"], EXTREMES)
    assert (read["a"].dtype, read["b"][0].numpy()) == (tf.int32, 2.5)
    with pytest.raises(ValueError, match="zip"):
        nest.assign({"a": EXTREMES})
