"""Distances between actions of different units, and the size of values."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.compilation import replicas
from tfrl.losses import masking
from tfrl.utils import actions as actions_lib


def squared(action_spec: Any, actions: Any, others: Any) -> tf.Tensor:
    """Returns the squared distances of actions that are scaled to [-1, 1].

    Args:
      action_spec: A nest of bounded float specs.
      actions: The nest of actions, `[B, ...]` or `[B, T, ...]`.
      others: Like `actions`.

    Returns:
      The sums over all components, `[B]` or `[B, T]`.
    """
    _, magnitudes = actions_lib.spec_means_and_magnitudes(action_spec)
    total = tf.constant(0.0)
    for spec, action, other, magnitude in zip(
        *map(tf.nest.flatten, (action_spec, actions, others, magnitudes)), strict=True
    ):
        square = tf.square((action - other) / tf.cast(magnitude, action.dtype))
        inner = list(range(square.shape.rank - spec.shape.rank, square.shape.rank))
        total += tf.cast(tf.reduce_sum(square, inner), tf.float32)
    return total


def mean_size(values: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
    """Returns the mean of the sizes of values that count, without gradient.

    In the replicas of a `tf.distribute` strategy, the values of all replicas count.

    Args:
      values: The values, `[B]` or `[B, T]`.
      counts: Whether each counts, like `values`.
    """
    sizes = masking.masked(tf.abs(tf.stop_gradient(values)), counts)
    shares = tf.cast(counts, sizes.dtype)
    total, share = replicas.mean_over_replicas(
        [tf.reduce_mean(sizes), tf.reduce_mean(shares)]
    )
    return tf.math.divide_no_nan(total, share)
