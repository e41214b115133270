"""Standardised values, worked by hand."""

import numpy as np
import tensorflow as tf

from tfrl import losses


def test_values_get_mean_zero_and_standard_deviation_one():
    # Mean 3, variance (4 + 0 + 4) / 3.
    values = losses.standardize(tf.constant([1.0, 3.0, 5.0]), tf.ones([3]))
    np.testing.assert_allclose(values, np.array([-2, 0, 2]) / np.sqrt(8 / 3), rtol=1e-6)


def test_masked_values_count_for_nothing_whatever_they_are():
    values = tf.constant([[1.0, np.nan], [np.inf, 3.0]])
    result = losses.standardize(values, tf.constant([[1.0, 0.0], [0.0, 1.0]]))
    np.testing.assert_allclose(np.diag(result), [-1, 1], rtol=1e-6)


def test_equal_values_become_zeros():
    np.testing.assert_array_equal(losses.standardize(tf.fill([4], 7.0), tf.ones(4)), 0)
