import numpy as np
import pytest
import tensorflow as tf

from tfrl.losses import masking

MASK = np.array([True, False, True, False])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("as_numbers", [False, True])
def test_numbers_outside_of_the_mask_are_zero(dtype, as_numbers):
    values = np.array([[-3, 5, 0, 7], [1, 2, 3, 4]], dtype)
    if dtype != np.int64:
        values[:, 1] = np.nan, np.inf
    mask = tf.constant(MASK, dtype if as_numbers else tf.bool)
    got = masking.masked(values, mask)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.where(MASK, values, 0))


def test_no_gradient_flows_outside_of_the_mask():
    values = tf.Variable([2.0, np.nan, 3.0, np.inf])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(masking.masked(values, MASK) ** 2)
    np.testing.assert_array_equal(tape.gradient(loss, values), [4.0, 0.0, 6.0, 0.0])
