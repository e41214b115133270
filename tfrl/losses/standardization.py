"""Standardises values to mean 0 and standard deviation 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tfrl.losses.shapes import check_same_shape


def standardize(
    values: tf.Tensor,
    mask: tf.Tensor,
    reduce_sum: Callable[[tf.Tensor], tf.Tensor] = tf.reduce_sum,
) -> tf.Tensor:
    """Standardises values by the mean and standard deviation of the unmasked values.

    Args:
      values: Floats of any shape, such as advantages `[B, T]`. Values where the mask is
        0 may be anything, including NaN.
      mask: 1.0 where a value counts, else 0.0, in the shape of `values`.
      reduce_sum: A function that sums up a tensor, for example over all replicas.

    Returns:
      `(values - mean) / (std + epsilon)`, even where the mask is 0.

    Raises:
      ValueError: The shapes differ.
    """
    check_same_shape(values=values, mask=mask)
    count = reduce_sum(mask)
    mean = reduce_sum(tf.math.multiply_no_nan(values, mask)) / count
    squares = tf.math.squared_difference(values, mean)
    variance = reduce_sum(tf.math.multiply_no_nan(squares, mask)) / count
    return (values - mean) / (tf.sqrt(variance) + np.finfo(np.float32).eps)
