"""Computes losses of value distributions that are given by their quantiles.

Dabney, Rowland, Bellemare and Munos, "Distributional reinforcement learning with
quantile regression" (2018, arXiv:1710.10044).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.losses.shapes import (
    check_broadcast,
    check_ranks,
    check_same_shape,
    check_scalars,
    shape_of,
)
from tfrl.losses.td import td_target

if TYPE_CHECKING:
    from tfrl.typing import types


def quantile(
    q_tm1: types.TensorLike,
    tau_q_tm1: types.TensorLike,
    r_t: types.TensorLike,
    d_t: types.TensorLike,
    q_t: types.TensorLike,
    huber_param: float = 0.0,
) -> tf.Tensor:
    """Returns the quantile regression loss of each example.

        sum_i mean_j |tau_i - 1(u_ij < 0)| huber(u_ij) / huber_param

    with `u_ij = r_t + d_t q_t_j - q_tm1_i`. Dabney et al. 2018, equation 10 and
    algorithm 1. With `huber_param = 0` this is the loss of equation 8, with `|u_ij|`
    instead of the Huber loss.

    Args:
      q_tm1: The predicted quantiles, `[B, N]`.
      tau_q_tm1: Their probabilities, `[B, N]` or `[N]`, in [0, 1]; they need not be
        evenly spaced.
      r_t: Rewards, `[B]`.
      d_t: Discounts, `[B]`, 0 where the next state is terminal.
      q_t: Quantiles, or samples of equal weight, of the values of the next states (the
        target network's), `[B, M]`; no gradient flows into them.
      huber_param: The error at which the Huber loss becomes linear.

    Returns:
      The losses, `[B]`.

    Raises:
      ValueError: A tensor has another rank, the shapes do not fit together, or
        `huber_param` is not a scalar.
    """
    q_tm1, r_t, d_t, q_t = map(tf.convert_to_tensor, (q_tm1, r_t, d_t, q_t))
    check_ranks((2,), q_tm1=q_tm1, q_t=q_t)
    check_same_shape(one_quantile_of_q_tm1=q_tm1.shape[:-1], r_t=r_t, d_t=d_t)
    check_same_shape(r_t=r_t, one_quantile_of_q_t=q_t.shape[:-1])
    _check_levels(q_tm1, tau_q_tm1=tau_q_tm1)
    check_scalars(huber_param=huber_param)
    ones = tf.ones_like(q_t)
    targets = td_target(r_t[..., tf.newaxis] * ones, d_t[..., tf.newaxis] * ones, q_t)
    losses = quantile_huber_loss(q_tm1, targets, huber_param, tau_q_tm1)
    return tf.reduce_sum(losses, axis=-1)


def quantile_huber_loss(
    predictions: types.TensorLike,
    targets: types.TensorLike,
    delta: float = 1.0,
    levels: types.TensorLike | None = None,
) -> tf.Tensor:
    """Returns the quantile Huber loss of each predicted quantile.

        mean_j |tau_i - 1(u_ij < 0)| huber(u_ij) / delta

    with `u_ij = target_j - prediction_i`. Dabney et al. 2018, equation 10; with `delta`
    0 this is equation 8, with `|u_ij|` instead of the Huber loss.

    Args:
      predictions: Quantiles `[..., N]`, of rising probability.
      targets: Samples or quantiles `[..., M]`, whose leading dimensions broadcast to
        the leading dimensions of the predictions; no gradient flows into them.
      delta: The error at which the Huber loss becomes linear.
      levels: The probabilities `tau_i`, `[N]` or `[..., N]`; `(i + 1/2) / N` if None.

    Returns:
      The losses, `[..., N]`.

    Raises:
      ValueError: `targets` or `levels` do not fit the predictions, or `delta` is not a
        scalar.
    """
    predictions, targets = map(tf.convert_to_tensor, (predictions, targets))
    check_broadcast(
        one_of_predictions=predictions.shape[:-1], one_of_targets=targets.shape[:-1]
    )
    check_scalars(delta=delta)
    if levels is not None:
        _check_levels(predictions, levels=levels)

    @tf.custom_gradient
    def of_predictions(predictions: tf.Tensor) -> tuple[tf.Tensor, Any]:
        tau = _levels(predictions) if levels is None else tf.convert_to_tensor(levels)
        tau = tau[..., tf.newaxis]
        errors = targets[..., tf.newaxis, :] - predictions[..., tf.newaxis]
        clipped = tf.clip_by_value(errors, -delta, delta)
        # The Huber loss is clipped * (errors - clipped / 2), and its slope is clipped.
        unit = clipped / delta if delta else tf.sign(errors)
        slopes = tf.where(errors < 0, 1 - tau, tau) * unit
        loss = _mean_of_pairs(slopes * (errors - 0.5 * clipped), predictions)
        slope = _mean_of_pairs(slopes, predictions)
        return loss, lambda upstream: -upstream * slope

    return of_predictions(predictions)


def _check_levels(predictions: tf.Tensor, **levels: Any) -> None:
    shape = predictions.shape
    for name, value in levels.items():
        is_vector = shape_of(value).rank == 1
        check_same_shape(
            predictions=shape[-1:] if is_vector else shape, **{name: value}
        )


def _levels(predictions: tf.Tensor) -> tf.Tensor:
    number = predictions.shape[-1]
    return (tf.range(number, dtype=predictions.dtype) + 0.5) / number


def _mean_of_pairs(pairs: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Returns the means over the last axis, in the shape of `like`.

    XLA adds up the last axis one number after the other, but computes a product with a
    vector many numbers at a time.
    """
    number = pairs.shape[-1]
    rows = tf.reshape(pairs, [-1, number])
    means = tf.linalg.matvec(rows, tf.fill([number], tf.cast(1 / number, pairs.dtype)))
    return tf.reshape(means, tf.shape(like))
