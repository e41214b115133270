"""Reduces losses to one scalar, and standardises values by their mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl.losses.shapes import check_same_shape, check_scalars

if TYPE_CHECKING:
    from tfrl.typing import types


class AggregatedLosses(NamedTuple):
    """Scalar losses: the weighted mean, the regularisation loss, and their sum."""

    total_loss: tf.Tensor | None
    weighted: tf.Tensor | None
    regularization: tf.Tensor | None


def aggregate_losses(
    per_example_loss: tf.Tensor | None = None,
    sample_weight: types.TensorLike | None = None,
    global_batch_size: types.Int | None = None,
    regularization_loss: types.TensorLike | None = None,
) -> AggregatedLosses:
    """Reduces losses per example and regularisation losses to one scalar.

    Args:
      per_example_loss: The losses, `[B]` or `[B, T, ...]`. The mean is taken over all
        dimensions.
      sample_weight: The weights of the losses: a scalar, `[B]` or `[B, T, ...]`,
        expanded on the right. A weight of zero removes a loss even if it is not finite.
      global_batch_size: The divisor of the sum over the batch; `B` if None. In the
        replicas of a `tf.distribute` strategy an agent takes the mean of the gradients,
        so a replica does not divide by the number of replicas.
      regularization_loss: A scalar or a list, which is summed up.

    Raises:
      ValueError: `per_example_loss` is a scalar, or its shape does not begin with the
        shape of `sample_weight`; or `global_batch_size` is not a scalar.
    """
    check_scalars(global_batch_size=global_batch_size)
    weighted = regularization = None
    if per_example_loss is not None:
        per_example_loss = tf.convert_to_tensor(per_example_loss)
        if per_example_loss.shape.rank == 0:
            raise ValueError(
                "per_example_loss: expected one loss per example, shape [B] or "
                "[B, T, ...], got a scalar; use an element-wise loss function such as "
                "tf.math.squared_difference."
            )
        if sample_weight is not None:
            weight = expand_weights(sample_weight, per_example_loss)
            per_example_loss = tf.math.multiply_no_nan(per_example_loss, weight)
        per_example_loss = tf.reduce_mean(
            per_example_loss, axis=list(range(1, per_example_loss.shape.rank))
        )
        if global_batch_size is None:
            weighted = tf.reduce_mean(per_example_loss)
        else:
            total = tf.reduce_sum(per_example_loss)
            weighted = total / tf.cast(global_batch_size, total.dtype)
    if regularization_loss is not None and not _is_empty(regularization_loss):
        regularization = tf.reduce_sum(regularization_loss)
    parts = [loss for loss in (weighted, regularization) if loss is not None]
    return AggregatedLosses(
        tf.add_n(parts) if parts else None, weighted, regularization
    )


def masked_mean(
    values: tf.Tensor,
    mask: tf.Tensor,
    reduce_sum: Callable[[tf.Tensor], tf.Tensor] = tf.reduce_sum,
) -> tf.Tensor:
    """Returns the mean of the values where `mask` is true, a float32 scalar.

    Args:
      values: A tensor of floats.
      mask: Booleans of the same shape. Where the mask is false, a value does not count,
        even if it is not finite. If no value counts, the result is 0.
      reduce_sum: See `standardize`.

    Raises:
      ValueError: The shapes differ.
    """
    check_same_shape(values=values, mask=mask)
    kept = tf.where(mask, tf.cast(values, tf.float32), 0.0)
    count = reduce_sum(tf.cast(mask, tf.float32))
    return tf.math.divide_no_nan(reduce_sum(kept), count)


def _is_empty(losses: Any) -> bool:
    return isinstance(losses, list | tuple) and not losses


def expand_weights(weights: types.TensorLike, like: tf.Tensor) -> tf.Tensor:
    """Returns `weights` with the dtype of `like` and, unless scalar, with its rank.

    Args:
      weights: A tensor of shape `[]`, `[B]`, `[B, T]` and so on.
      like: A tensor of shape `[B, T, ...]`.

    Raises:
      ValueError: The shape of `like` does not begin with the shape of `weights`.
    """
    weights = tf.cast(weights, like.dtype)
    rank = weights.shape.rank
    if rank > like.shape.rank or not weights.shape.is_compatible_with(
        like.shape[:rank]
    ):
        raise ValueError(
            f"weights: expected a scalar or a shape that begins {like.shape}, got "
            f"{weights.shape}; give one weight for each example, [B]."
        )
    return weights[(..., *[tf.newaxis] * (like.shape.rank - rank))] if rank else weights


def standardize(
    values: tf.Tensor,
    mask: tf.Tensor,
    reduce_sum: Callable[[tf.Tensor], tf.Tensor] = tf.reduce_sum,
) -> tf.Tensor:
    """Standardises values by the mean and standard deviation of the unmasked values.

    Args:
      values: Floats of any shape, such as advantages `[B, T]`. Values where the mask is
        0 may be anything, including NaN.
      mask: 1.0 where a value counts, else 0.0, in the shape of `values`.
      reduce_sum: A function that sums up a tensor, for example over all replicas.

    Returns:
      `(values - mean) / (std + epsilon)`, even where the mask is 0.

    Raises:
      ValueError: The shapes differ.
    """
    check_same_shape(values=values, mask=mask)
    count = reduce_sum(mask)
    mean = reduce_sum(tf.math.multiply_no_nan(values, mask)) / count
    squares = tf.math.squared_difference(values, mean)
    variance = reduce_sum(tf.math.multiply_no_nan(squares, mask)) / count
    return (values - mean) / (tf.sqrt(variance) + np.finfo(np.float32).eps)
