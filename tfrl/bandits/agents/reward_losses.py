"""Losses of predicted rewards, for each row: pure functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.bandits.networks import network_outputs
from tfrl.typing import types


def row_errors(
    output: Any,
    reward: tf.Tensor,
    action: tf.Tensor,
    error_loss_fn: Callable[..., tf.Tensor],
    laplacian: types.TensorLike | None = None,
    smoothing: float = 0.0,
) -> tf.Tensor:
    """Returns the error of each row's predicted reward, `[n]`.

    Args:
      output: The predicted rewards of all arms, `[n, A]`, or a `QBanditNetworkResult`.
      reward: The rewards, float32 `[n]`.
      action: The chosen arms, int32 `[n]`.
      error_loss_fn: The loss of rewards and predictions, for each element; not used
        with a `QBanditNetworkResult`.
      laplacian: See `laplacian_penalty`, or None.
      smoothing: The weight of this penalty.
    """
    predicted = network_outputs.mean_of(output)
    chosen = tf.gather(predicted, action, batch_dims=1)
    if predicted is output:
        error = error_loss_fn(reward, chosen)
    else:
        log_variance = tf.gather(output.log_variance, action, batch_dims=1)
        error = heteroscedastic_error(reward, chosen, log_variance)
    if laplacian is None:
        return error
    return error + smoothing * laplacian_penalty(predicted, laplacian)


def heteroscedastic_error(
    reward: tf.Tensor, mean: tf.Tensor, log_variance: tf.Tensor
) -> tf.Tensor:
    """Returns minus the log density of a normal reward, without its constant, `[n]`.

    That is `(r - f)^2 exp(-v) / 2 + v / 2` (Kendall and Gal, "What uncertainties do we
    need in Bayesian deep learning for computer vision?", 2017, arXiv:1703.04977,
    equation 8).

    Args:
      reward: The rewards, `[n]`.
      mean: The predicted rewards f, `[n]`.
      log_variance: The logarithms v of the predicted variances, `[n]`.
    """
    errors = tf.math.squared_difference(reward, mean)
    return 0.5 * (tf.exp(-log_variance) * errors + log_variance)


def laplacian_penalty(predicted: tf.Tensor, laplacian: types.TensorLike) -> tf.Tensor:
    """Returns `f' L f` of each row, `[n]`: how much related arms differ.

    Args:
      predicted: The predicted rewards of all arms, `[n, A]`.
      laplacian: The Laplacian matrix of a graph of the arms, `[A, A]`.
    """
    related = tf.matmul(predicted, tf.cast(laplacian, predicted.dtype))
    return tf.reduce_sum(predicted * related, axis=1)
