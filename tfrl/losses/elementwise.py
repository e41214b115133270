"""The squared loss and the Huber loss, for each element of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.losses.shapes import check_same_shape, check_scalars

if TYPE_CHECKING:
    from tfrl.typing import types


def huber(
    inputs: types.TensorLike, quadratic_linear_boundary: float = 1.0
) -> tf.Tensor:
    """Returns `huber_loss(inputs, quadratic_linear_boundary)`; Acme's name of it.

    Raises:
      ValueError: The boundary is negative, or not a scalar.
    """
    check_scalars(quadratic_linear_boundary=quadratic_linear_boundary)
    if quadratic_linear_boundary < 0:
        raise ValueError(
            f"quadratic_linear_boundary: got {quadratic_linear_boundary}, expected 0 "
            "or more; 1 is usual."
        )
    return huber_loss(inputs, quadratic_linear_boundary)


def squared_loss(error: types.TensorLike) -> tf.Tensor:
    """Returns `x^2`, without a half, in the shape of `error`."""
    return tf.math.square(error)


def half_squared_difference(x: types.TensorLike, y: types.TensorLike) -> tf.Tensor:
    """Returns `(x - y)^2 / 2`, whose gradient is the error, in the shape of `x`.

    Raises:
      ValueError: `y` has another shape.
    """
    check_same_shape(x=x, y=y)
    return 0.5 * tf.math.squared_difference(x, y)


def huber_loss(error: types.TensorLike, delta: float = 1.0) -> tf.Tensor:
    """Returns a loss that is quadratic near 0 and linear beyond `delta`.

        x^2 / 2                    where |x| <= delta
        delta (|x| - delta / 2)    elsewhere

    Huber, "Robust Estimation of a Location Parameter", 1964. With `delta = 1` its
    gradient is the clipped error of Mnih et al., 2015.

    Raises:
      ValueError: `delta` is not a scalar.
    """
    check_scalars(delta=delta)
    size = tf.abs(error)
    quadratic = tf.minimum(size, delta)
    return 0.5 * tf.square(quadratic) + delta * (size - quadratic)
