"""Sums and shifts values along time, in rows `[B, T]` of one episode each.

Only `discounted_future_sum_masked` takes the ends of episodes into account. For rows of
several episodes, use the functions of `tfrl.losses.returns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.losses.shapes import check_same_shape, check_scalars

if TYPE_CHECKING:
    from tfrl.typing import types


def discounted_future_sum(
    values: types.TensorLike, gamma: types.TensorLike, num_steps: types.Int
) -> tf.Tensor:
    """Returns the discounted sum of each value and the `num_steps - 1` after it.

    The sum is `v_t + g v_(t+1) + ... + g^(n-1) v_(t+n-1)`. Values after the last one
    count as 0.

    Args:
      values: Floats `[B, T]`.
      gamma: A scalar.
      num_steps: A positive integer, or integer tensor, `n`.

    Returns:
      The sums `[B, T]`.

    Raises:
      ValueError: If `values` is not of rank 2, `gamma` or `num_steps` is not a scalar,
        or `num_steps` is a number below 1.
    """
    values = _batch_major(values)
    check_scalars(gamma=gamma, num_steps=num_steps)
    _check_at_least("num_steps", num_steps, 1)
    num_steps = tf.minimum(num_steps, tf.shape(values)[1])
    weights = _powers(gamma, tf.range(num_steps), values.dtype)
    padded = tf.pad(values, [[0, 0], [0, num_steps - 1]])
    # TensorFlow's convolution does not reverse the filter.
    sums = tf.nn.conv1d(
        padded[..., tf.newaxis],
        weights[:, tf.newaxis, tf.newaxis],
        stride=1,
        padding="VALID",
    )
    return tf.ensure_shape(tf.squeeze(sums, -1), values.shape)


def discounted_future_sum_masked(
    values: types.TensorLike,
    gamma: types.TensorLike,
    num_steps: types.Int,
    episode_lengths: types.TensorLike,
) -> tf.Tensor:
    """Computes `discounted_future_sum` with zeros after the end of each row's episode.

    Args:
      values: Floats `[B, T]`.
      gamma: A scalar.
      num_steps: A positive integer, or integer tensor.
      episode_lengths: Integers `[B]`.

    Returns:
      The sums `[B, T]`.

    Raises:
      ValueError: As for `discounted_future_sum`, or there is not one length per row.
    """
    values = _batch_major(values)
    check_same_shape(
        one_step_of_values=values.shape[:1], episode_lengths=episode_lengths
    )
    inside = tf.sequence_mask(episode_lengths, tf.shape(values)[1])
    # The values are selected, not multiplied, because values after an episode may be
    # anything, such as NaN.
    return discounted_future_sum(tf.where(inside, values, 0), gamma, num_steps)


def shift_values(
    values: types.TensorLike,
    gamma: types.TensorLike,
    num_steps: types.Int,
    final_values: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns the discounted values `n` steps later, as for n-step bootstrapping.

    Args:
      values: Floats `[B, T]`.
      gamma: A scalar.
      num_steps: An integer, or integer tensor, `n`, of at least 0.
      final_values: Floats `[B]`, the values after step T - 1; 0 if None.

    Returns:
      `[B, T]`: `g^n v_(t+n)` where `t + n < T`, and `g^(T-t) final_value` elsewhere.

    Raises:
      ValueError: If `values` is not of rank 2, `gamma` or `num_steps` is not a scalar,
        `num_steps` is a number below 0, or there is not one final value for each row.
    """
    values = _batch_major(values)
    check_scalars(gamma=gamma, num_steps=num_steps)
    _check_at_least("num_steps", num_steps, 0)
    num_steps = tf.minimum(num_steps, tf.shape(values)[1])
    if final_values is None:
        final_values = tf.zeros_like(values[:, 0])
    check_same_shape(one_step_of_values=values.shape[:1], final_values=final_values)
    final_values = tf.cast(final_values, values.dtype)
    steps_left = tf.range(num_steps, 0, -1)
    ends = final_values[:, tf.newaxis] * _powers(gamma, steps_left, values.dtype)
    shifted = _powers(gamma, num_steps, values.dtype) * values[:, num_steps:]
    return tf.ensure_shape(tf.concat([shifted, ends], axis=1), values.shape)


def _powers(gamma: Any, exponents: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return tf.pow(tf.cast(gamma, dtype), tf.cast(exponents, dtype))


def _batch_major(values: Any) -> tf.Tensor:
    values = tf.convert_to_tensor(values)
    if values.shape.rank != 2:
        raise ValueError(
            f"values: got rank {values.shape.rank} (shape {values.shape}), expected "
            "floats [B, T]; add a batch dimension with values[tf.newaxis]."
        )
    return values


def _check_at_least(name: str, value: Any, minimum: int) -> None:
    if not tf.is_tensor(value) and value < minimum:
        raise ValueError(
            f"{name}: got {value}, expected a number of steps of at least {minimum}; "
            "steps are counted towards the future."
        )
