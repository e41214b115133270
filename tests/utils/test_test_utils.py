"""What tests written for TF-Agents import."""

import numpy as np
import tensorflow as tf

from tfrl.utils import test_utils


def test_contains_compares_arrays():
    arrays = [np.array([1, 2]), np.array([3, 4])]
    assert test_utils.contains(arrays, [np.array([3, 4])])
    assert test_utils.contains(arrays, [])
    assert not test_utils.contains(arrays, [np.array([3, 4]), np.array([1, 3])])
    assert not test_utils.contains(arrays, [np.array([1])])


def test_the_base_class_is_tensorflows():
    case = test_utils.TestCase()
    case.assertAllClose(tf.constant([1.0]), [1.0])
    assert case.evaluate(tf.constant(3)) == 3
