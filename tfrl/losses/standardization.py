"""Brings values to mean 0 and standard deviation 1."""

from __future__ import annotations

import numpy as np
import tensorflow as tf


def standardize(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Brings the values under the mask to mean 0 and standard deviation 1.

    Args:
      values: Floats of any shape, such as advantages `[B, T]`. Those that the mask
        leaves out may be anything, NaN included.
      mask: 1.0 where a value counts, else 0.0, like `values`.

    Returns:
      All values, less the mean and divided by the standard deviation of those that
      count, plus an epsilon.
    """
    count = tf.reduce_sum(mask)
    mean = tf.reduce_sum(tf.math.multiply_no_nan(values, mask)) / count
    squares = tf.math.squared_difference(values, mean)
    variance = tf.reduce_sum(tf.math.multiply_no_nan(squares, mask)) / count
    return (values - mean) / (tf.sqrt(variance) + np.finfo(np.float32).eps)
