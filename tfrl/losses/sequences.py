"""Checks time-major sequences, and solves recurrences along their time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.losses.shapes import check_ranks, check_same_shape

if TYPE_CHECKING:
    from tfrl.typing import types


def as_sequences(**sequences: Any) -> list[tf.Tensor]:
    """Returns tensors `[T]` or `[T, B]` of equal shapes.

    Raises:
      ValueError: A tensor has another rank, or the shapes differ.
    """
    tensors = {name: tf.convert_to_tensor(s) for name, s in sequences.items()}
    check_ranks((1, 2), **tensors)
    check_same_shape(**tensors)
    return list(tensors.values())


def as_continues(continues_t: types.TensorLike | None, r_t: tf.Tensor) -> tf.Tensor:
    """Returns `continues_t` with the dtype of `r_t`; ones if it is None.

    Raises:
      ValueError: The shapes differ.
    """
    if continues_t is None:
        return tf.ones_like(r_t)
    continues_t = tf.cast(continues_t, r_t.dtype)
    check_same_shape(r_t=r_t, continues_t=continues_t)
    return continues_t


def solve_backwards(increments: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """Solves `x_t = increments_t + factors_t x_(t+1)`, `x_T = 0`, along axis 0.

    Each round substitutes the recurrence into itself, which doubles its stride. This
    takes log2(T) rounds of whole-array operations instead of T steps (Hillis and
    Steele, 1986).
    """

    def double(stride: Any, x: Any, factors: Any) -> tuple[Any, Any, Any]:
        x += factors * shift(x, stride)
        return 2 * stride, x, factors * shift(factors, stride)

    num_steps = increments.shape[0]
    stride, x = 1, increments
    if num_steps is None:
        num_steps = tf.shape(increments)[0]
        return tf.while_loop(
            lambda stride, *_: stride < num_steps, double, (stride, x, factors)
        )[1]
    while stride < num_steps:
        stride, x, factors = double(stride, x, factors)
    return x


def shift(x: tf.Tensor, stride: types.Int) -> tf.Tensor:
    """Shifts `x` so that entry `t` is `x[t + stride]`, or 0 beyond the end."""
    return tf.concat([x[stride:], tf.zeros_like(x[:stride])], axis=0)
