"""Computes a stream's mean and variance in low precision, with compensated sums.

In float32 a running mean near 10^6 moves in steps of 0.06, and a sum of squared
deviations stops growing after 10^7 terms. The sums of this module carry their rounding
errors along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def parallel_variance_calculation(
    n_a: Any, avg_a: Any, m2_a: Any, n_b: Any, avg_b: Any, m2_b: Any, m2_b_c: Any
) -> tuple[Any, Any, Any, Any]:
    """Returns mean and squared deviations of the union of two sets of numbers.

    From Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for
    Computing Sample Variances", 1979; the squared deviations are added up by
    `kahan_summation`. The result is most precise if `a` is the smaller set. To add one
    number `x`: `n_a = 1`, `avg_a = x`, `m2_a = 0`.

    Args:
      n_a: The number of numbers in `a`.
      avg_a: The mean of `a`.
      m2_a: The sum of the squared deviations of `a` from its mean.
      n_b: The number of numbers in `b`.
      avg_b: The mean of `b`.
      m2_b: The sum of the squared deviations of `b` from its mean.
      m2_b_c: The carry of `m2_b`; see `kahan_summation`.

    Returns:
      `(n_ab, avg_ab, m2_ab, m2_ab_c)`; the variance is `m2_ab / n_ab`. The mean of an
      empty set is ignored.
    """
    delta = tf.convert_to_tensor(avg_b - avg_a)
    n_a, n_b = tf.cast(n_a, delta.dtype), tf.cast(n_b, delta.dtype)
    n_ab = n_a + n_b
    shift = tf.math.divide_no_nan(delta * n_b, n_ab)
    m2_ab, m2_ab_c = kahan_summation(m2_b, m2_b_c, m2_a + delta * n_a * shift)
    return n_ab, avg_a + shift, m2_ab, m2_ab_c


def kahan_summation(accumulator: Any, carry: Any, value: Any) -> tuple[Any, Any]:
    """Adds `value` to a sum, and carries the rounding error.

    From Kahan, "Further Remarks on Reducing Truncation Errors", 1965.

    Args:
      accumulator: The sum so far.
      carry: The amount by which the sum so far is too large; 0 at the start.
      value: The value to add.

    Returns:
      The new sum and the new carry.
    """
    corrected = value - carry
    total = accumulator + corrected
    return total, (total - accumulator) - corrected


def masked_sum(
    values: tf.Tensor, mask: tf.Tensor | None, axes: Sequence[int]
) -> tf.Tensor:
    """Returns the sum over `axes` of the values whose mask is True.

    Args:
      values: `[*outer, *inner]`.
      mask: Bool `[*outer]`; None for all values. Other values may be NaN.
      axes: The dimensions over which to sum.
    """
    if mask is not None:
        for _ in range(values.shape.rank - mask.shape.rank):
            mask = mask[..., tf.newaxis]
        values = tf.where(mask, values, tf.zeros([], values.dtype))
    return tf.reduce_sum(values, axes)


class RunningMoments(tf.Module):
    """Tracks the elementwise mean and variance of all values seen so far."""

    def __init__(self, shape: Any, dtype: tf.DType) -> None:
        """Creates moments for values of a shape and a floating-point dtype."""
        super().__init__(name="running_moments")
        self._dtype = tf.as_dtype(dtype)
        # A float32 would stop counting at 2^24.
        self.count = tf.Variable(0, dtype=tf.int64, trainable=False, name="count")
        self.avg, self.avg_carry, self.m2, self.m2_carry = (
            tf.Variable(tf.zeros(shape, dtype), trainable=False, name=name)
            for name in ("avg", "avg_carry", "m2", "m2_carry")
        )

    def update(self, values: tf.Tensor, mask: tf.Tensor | None = None) -> None:
        """Adds values to the set.

        Args:
          values: `[..., *shape]`.
          mask: Whether each value counts, bool `[...]`; all count if None.
        """
        axes = list(range(values.shape.rank - self.avg.shape.rank))
        if mask is None:
            number = tf.reduce_prod(tf.shape(values, tf.int64)[: len(axes)])
        else:
            number = tf.reduce_sum(tf.cast(mask, tf.int64))
        divisor = tf.cast(number, self._dtype)
        center = tf.math.divide_no_nan(masked_sum(values, mask, axes), divisor)
        # The rounding error of the mean is the mean of the deviations.
        deviations = values - center
        low = tf.math.divide_no_nan(masked_sum(deviations, mask, axes), divisor)
        m2 = masked_sum(tf.square(deviations - low), mask, axes)
        # Means are passed relative to `self.avg`, so they are small and thus precise.
        _, step, m2, m2_carry = parallel_variance_calculation(
            divisor,
            (center - self.avg) + low,
            m2,
            tf.cast(self.count, self._dtype),
            -self.avg_carry,
            self.m2,
            self.m2_carry,
        )
        avg, avg_carry = kahan_summation(self.avg, tf.zeros_like(step), step)
        self.count.assign_add(number)
        self.avg.assign(avg)
        self.avg_carry.assign(avg_carry)
        self.m2.assign(m2)
        self.m2_carry.assign(m2_carry)

    def variance(self) -> tf.Tensor:
        """Returns the variance of the values seen so far, 0 before the first value."""
        return tf.math.divide_no_nan(self.m2, tf.cast(self.count, self._dtype))

    def reset(self) -> None:
        """Forgets all values."""
        for variable in self.variables:
            variable.assign(tf.zeros_like(variable))
