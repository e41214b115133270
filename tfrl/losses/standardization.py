"""Standardises values to mean 0 and standard deviation 1."""

from __future__ import annotations

import numpy as np
import tensorflow as tf


def standardize(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Standardises values by the mean and standard deviation of the unmasked ones.

    Args:
      values: Floats of any shape, such as advantages `[B, T]`. Values where the mask is
        0 may be anything, including NaN.
      mask: 1.0 where a value counts, else 0.0, in the shape of `values`.

    Returns:
      `(values - mean) / (std + epsilon)`, also where the mask is 0.
    """
    count = tf.reduce_sum(mask)
    mean = tf.reduce_sum(tf.math.multiply_no_nan(values, mask)) / count
    squares = tf.math.squared_difference(values, mean)
    variance = tf.reduce_sum(tf.math.multiply_no_nan(squares, mask)) / count
    return (values - mean) / (tf.sqrt(variance) + np.finfo(np.float32).eps)
