"""A tanh whose inverse stays finite at the ends of its range."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp


class Tanh(tfp.bijectors.Tanh):
    """`y = tanh(x)` with an inverse that is finite at -1 and 1.

    A rounded `tanh` can be -1 or 1, where `atanh` is infinite. The inverse replaces
    these two by the nearest numbers inside the range.
    """

    def _inverse(self, y: tf.Tensor) -> tf.Tensor:
        dtype = y.dtype.as_numpy_dtype
        limit = np.nextafter(dtype(1), dtype(0))
        # Values outside the range are not clipped, so that they give NaN.
        inside = tf.abs(y) <= 1
        return tf.atanh(tf.where(inside, tf.clip_by_value(y, -limit, limit), y))
