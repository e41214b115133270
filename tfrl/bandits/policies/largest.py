"""The probability that an arm's random score is the largest, by integrals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

# The points of the integrals, and the densities there.
_NORMAL_POINTS = np.linspace(-6.0, 6.0, 513)
_GUMBEL_POINTS = np.linspace(-4.0, 25.0, 1025)
_BETA_DEVIATIONS, _BETA_POINTS = 8.0, 513


def log_probabilities(
    values: tf.Tensor,
    density: tf.Tensor,
    distribution: Callable[[tf.Tensor], tf.Tensor],
    allowed: tf.Tensor,
) -> tf.Tensor:
    """Returns for each arm the log probability that its score is the largest.

    It is the sum over the points of an arm of its density there times the product of
    the other allowed arms' distribution functions, for evenly spaced points; the
    probabilities of a row are scaled to add up to 1.

    Args:
      values: Evenly spaced scores of each arm, float64 `[B, A, points]`.
      density: What each counts, of a shape that broadcasts to `values`.
      distribution: Maps scores `[B, A, points, 1]` to the probabilities that each arm's
        score is below, `[B, A, points, A]`.
      allowed: The arms that are compared, bool `[B, A]`.
    """
    num_arms = values.shape[1]
    counts = allowed[:, None, None] & ~tf.eye(num_arms, dtype=tf.bool)[:, None]
    below = tf.where(counts, distribution(values[..., tf.newaxis]), 1.0)
    total = tf.reduce_sum(density * tf.reduce_prod(below, axis=-1), axis=-1)
    total = tf.where(allowed, total, 0.0)
    share = tf.math.divide_no_nan(total, tf.reduce_sum(total, axis=1, keepdims=True))
    return tf.where(share > 0, tf.math.log(tf.maximum(share, 1e-300)), tf.float32.min)


def of_normal(mean: tf.Tensor, deviation: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    """Returns the log probabilities for normal scores.

    Args:
      mean: Float64 `[B, A]`.
      deviation: Standard deviations, `[B, A]`.
      allowed: The arms that are compared, bool `[B, A]`.
    """
    deviation = tf.maximum(deviation, 1e-12)

    def below(score: tf.Tensor) -> tf.Tensor:
        standard = (score - mean[:, None, None]) / deviation[:, None, None]
        return tf.math.erfc(-standard / math.sqrt(2)) / 2

    density = tf.constant(np.exp(-(_NORMAL_POINTS**2) / 2))
    values = mean[..., tf.newaxis] + deviation[..., tf.newaxis] * _NORMAL_POINTS
    return log_probabilities(values, density, below, allowed)


def of_gumbel(mean: tf.Tensor, scale: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    """Returns the log probabilities for `mean + scale G`, with Gumbel's G.

    Args:
      mean: Float64 `[B, A]`.
      scale: `[B, A]`, positive.
      allowed: The arms that are compared, bool `[B, A]`.
    """

    def below(score: tf.Tensor) -> tf.Tensor:
        standard = (score - mean[:, None, None]) / scale[:, None, None]
        return tf.exp(-tf.exp(-tf.maximum(standard, -700.0)))

    points = _GUMBEL_POINTS
    density = tf.constant(np.exp(-points - np.exp(-points)))
    values = mean[..., tf.newaxis] + scale[..., tf.newaxis] * points
    return log_probabilities(values, density, below, allowed)


def of_beta(alpha: tf.Tensor, beta: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    """Returns the log probabilities for scores of beta distributions.

    Args:
      alpha: Float64 `[A]`.
      beta: Float64 `[A]`.
      allowed: The arms that are compared, bool `[B, A]`.
    """
    total = alpha + beta
    mean = alpha / total
    deviation = tf.sqrt(mean * (1 - mean) / (total + 1))
    low = tf.maximum(mean - _BETA_DEVIATIONS * deviation, 0.0)
    high = tf.minimum(mean + _BETA_DEVIATIONS * deviation, 1.0)
    middles = (np.arange(_BETA_POINTS) + 0.5) / _BETA_POINTS
    values = low[:, tf.newaxis] + (high - low)[:, tf.newaxis] * middles
    logs = (alpha - 1)[:, tf.newaxis] * tf.math.log(values)
    logs += (beta - 1)[:, tf.newaxis] * tf.math.log1p(-values)
    density = tf.nn.softmax(logs, axis=1)

    def below(score: tf.Tensor) -> tf.Tensor:
        shape = [*score.shape[:3], alpha.shape[0]]
        return tf.math.betainc(
            *(tf.broadcast_to(each, shape) for each in (alpha, beta, score))
        )

    # All rows have the same distributions; only the allowed arms differ.
    return log_probabilities(values[tf.newaxis], density, below, allowed)
