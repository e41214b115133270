"""The loss of quantile regression, and losses of each element."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import tensorflow as tf

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
