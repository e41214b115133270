"""Masks numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

if TYPE_CHECKING:
    from tfrl.typing import types


def masked(values: types.TensorLike, mask: tf.Tensor) -> tf.Tensor:
    """Returns `values` where `mask` is true, and 0 elsewhere, even for NaN.

    Result and gradient are the same as with `tf.where(mask, values, 0)`, whose kernel
    takes several times as long for small tensors.

    Args:
      values: Numbers, `[...]`.
      mask: Bools, or ones and zeros, which broadcast with `values`.
    """
    values = tf.convert_to_tensor(values)
    if not values.dtype.is_floating:
        return tf.where(tf.cast(mask, tf.bool), values, 0)
    return tf.math.multiply_no_nan(values, tf.cast(mask, values.dtype))
