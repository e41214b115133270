"""A tanh whose inverse stays finite at the ends of its range."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp


class Tanh(tfp.bijectors.Tanh):
    """`y = tanh(x)`; in the inverse, -1 and 1 count as the numbers next to them.

    Rounding reaches the ends, and `atanh` of them is infinite.
    """

    def _inverse(self, y: tf.Tensor) -> tf.Tensor:
        dtype = y.dtype.as_numpy_dtype
        limit = np.nextafter(dtype(1), dtype(0))
        # What is outside the range stays and gives NaN, as it should.
        inside = tf.abs(y) <= 1
        return tf.atanh(tf.where(inside, tf.clip_by_value(y, -limit, limit), y))
