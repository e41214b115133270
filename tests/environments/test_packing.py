import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import packing

DTYPES = [
    np.bool_,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.float16,
    np.int32,
    np.uint32,
    np.float32,
    np.int64,
    np.uint64,
    np.float64,
]


def round_trip(arrays):
    plan = packing.Packing(
        [a.shape for a in arrays], [tf.as_dtype(a.dtype) for a in arrays]
    )

    @tf.function
    def through_a_graph():
        outputs = tf.numpy_function(lambda: plan.pack(arrays), [], plan.dtypes)
        return plan.unpack(outputs if isinstance(outputs, list) else [outputs])

    return through_a_graph(), plan


def some_array(dtype, shape, seed=0):
    raw = np.random.default_rng(seed).integers(0, 100, shape)
    return (raw % 2 == 0) if dtype is np.bool_ else raw.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (3,), (3, 5), (1, 2, 3)])
def test_every_dtype_and_shape_comes_out_as_it_went_in(dtype, shape):
    array = some_array(dtype, shape)
    (tensor,), _ = round_trip([array])
    assert tensor.dtype == tf.as_dtype(dtype)
    assert tensor.shape == shape
    np.testing.assert_array_equal(tensor, array)


def test_arrays_of_all_kinds_travel_as_one():
    arrays = [some_array(dtype, (3,), i) for i, dtype in enumerate(DTYPES)]
    tensors, plan = round_trip(arrays)
    assert plan.dtypes == [tf.int32]
    for tensor, array in zip(tensors, arrays, strict=True):
        np.testing.assert_array_equal(tensor, array)


def test_large_arrays_and_text_are_outputs_of_their_own():
    arrays = [
        np.zeros([1, 84, 84], np.uint8),
        np.array([1.5], np.float32),
        np.array([b"left"], object),
    ]
    plan = packing.Packing([a.shape for a in arrays], [tf.uint8, tf.float32, tf.string])
    assert plan.dtypes == [tf.int32, tf.uint8, tf.string]
    packed = plan.pack(arrays)
    assert packed[0].shape == (1,)
    np.testing.assert_array_equal(packed[1], arrays[0])


def test_what_is_not_a_number_survives():
    array = np.array([np.nan, np.inf, -0.0], np.float32)
    (tensor,), _ = round_trip([array])
    np.testing.assert_array_equal(tensor.numpy().view(np.int32), array.view(np.int32))


def test_nothing_in_the_batch_is_nothing_out():
    (tensor,), _ = round_trip([np.zeros([2, 0], np.float32)])
    assert tensor.shape == (2, 0)
