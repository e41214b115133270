"""The loss of quantile regression, and losses of each element."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.bandits.networks import network_outputs
from tfrl.typing import types


def element_wise(error_loss_fn: types.LossFn) -> types.LossFn:
    """Returns a loss for each element, also of a function with a `reduction`.

    Losses of `tf.compat.v1.losses`, TF-Agents' default, return one number without it.
    """
    if "reduction" in inspect.signature(error_loss_fn).parameters:
        return functools.partial(error_loss_fn, reduction="none")
    return error_loss_fn


def pinball_loss(
    y_true: Any,
    y_pred: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = None,
    reduction: str = tf.compat.v1.losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
    quantile: float = 0.5,
) -> tf.Tensor:
    """Returns `max(q e, (q - 1) e)` of the errors `e = y_true - y_pred`.

    Its expectation is least if the prediction is the quantile q (Koenker and Bassett,
    "Regression quantiles", 1978).

    Args:
      y_true: The numbers.
      y_pred: The predictions, of the same shape.
      weights: The weights, a scalar or of the same rank as `y_true`.
      scope: A name scope.
      loss_collection: A collection of TensorFlow 1; None for none.
      reduction: "none" for the loss of each element, or one of
        `tf.compat.v1.losses.Reduction`.
      quantile: q, from 0 to 1.

    Raises:
      ValueError: The shapes differ.
    """
    y_true, y_pred = tf.cast(y_true, tf.float32), tf.cast(y_pred, tf.float32)
    if not y_true.shape.is_compatible_with(y_pred.shape):
        raise ValueError(
            f"y_pred: got shape {y_pred.shape}, expected {y_true.shape}, that of "
            "y_true; predict a number for each."
        )
    error = y_true - y_pred
    return tf.compat.v1.losses.compute_weighted_loss(
        tf.maximum(quantile * error, (quantile - 1) * error),
        weights,
        scope,
        loss_collection,
        reduction,
    )


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
