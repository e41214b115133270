"""Normalizes observations and rewards by their running mean and variance.

The statistics are computed in low precision, with compensated sums: in float32 a
running mean near 10^6 moves in steps of 0.06, and a sum of squared deviations stops
growing after 10^7 terms. The sums of this module carry their rounding errors along.

>>> moments = RunningMoments([], tf.float32)
>>> moments.update(tf.constant([1.0, 3.0]))
>>> float(moments.avg), float(moments.variance())
(2.0, 1.0)
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.utils import nest_utils
from tfrl.utils.variables import create_variable

__all__ = [
    "EMATensorNormalizer",
    "StreamingTensorNormalizer",
    "TensorNormalizer",
    "create_variable",
    "kahan_summation",
    "parallel_variance_calculation",
]


class TensorNormalizer(tf.Module, abc.ABC):
    """Scales nests of tensors to mean 0 and variance 1, with running statistics.

    ```python
    normalizer = StreamingTensorNormalizer(tf.TensorSpec([3]))
    normalizer.update(observations)  # [B, 3]
    normalized = normalizer.normalize(observations)
    ```

    Statistics are elementwise, in float32 (float64 for int64 and float64 tensors). The
    variables are tracked by `tf.train.Checkpoint`. Before the first update, the mean is
    0 and the variance 1.
    """

    def __init__(self, tensor_spec: Any, scope: str = "normalize_tensor") -> None:
        """Creates a normalizer of tensors of `tensor_spec`, a nest of specs."""
        super().__init__(name=scope)
        self._flat_specs = tuple(tf.nest.flatten(tensor_spec))
        # Bound in functions, because tf.Module wraps containers that are attributes.
        self._pack = functools.partial(tf.nest.pack_sequence_as, tensor_spec)
        self._check = functools.partial(
            nest_utils.assert_matching_dtypes_and_inner_shapes,
            specs=tensor_spec,
            caller=type(self).__name__,
            tensors_name="tensor",
            specs_name="tensor_spec",
        )
        self._create_variables()

    @property
    def tensor_spec(self) -> Any:
        """The nest of specs of the tensors, without outer dimensions."""
        return self._pack(self._flat_specs)

    def map_dtype(self, dtype: tf.DType) -> tf.DType:
        """Returns the floating-point dtype of the statistics for tensors of `dtype`."""
        wide = tf.as_dtype(dtype) in (tf.float64, tf.int64)
        return tf.float64 if wide else tf.float32

    @property
    @abc.abstractmethod
    def variables(self) -> tuple[Any, ...]:
        """The statistics, each a nest of variables like the specs."""

    @abc.abstractmethod
    def _create_variables(self) -> None:
        """Makes the variables for `self._flat_specs`."""

    @abc.abstractmethod
    def _update_ops(
        self,
        flat_tensors: list[tf.Tensor],
        outer_dims: Sequence[int],
        mask: tf.Tensor | None,
    ) -> None:
        """Updates the variables; takes the arguments of `update`."""

    @abc.abstractmethod
    def _get_mean_var_estimates(self) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Returns the flat means and variances."""

    def update(
        self,
        tensor: Any,
        outer_dims: Sequence[int] = (0,),
        *,
        mask: tf.Tensor | None = None,
    ) -> None:
        """Adds the values of `tensor` to the statistics.

        Args:
          tensor: A nest of `[B, ...]`, or with more outer dimensions.
          outer_dims: The dimensions that are outer dimensions.
          mask: Whether each entry of the outer dimensions counts, bool `[B]`; all count
            if None. If no entry counts, nothing changes.

        Raises:
          ValueError: If a tensor does not have its spec's dtype and inner shape.
        """
        self._update_ops(self._floats(tensor), outer_dims, mask)

    def normalize(
        self,
        tensor: Any,
        clip_value: float = 5.0,
        center_mean: bool = True,
        variance_epsilon: float = 1e-3,
    ) -> Any:
        """Returns `(x - mean) / sqrt(variance + variance_epsilon)` for each tensor.

        Args:
          tensor: A nest of tensors, with any outer dimensions.
          clip_value: The largest absolute value of the results; 0 does not clip.
          center_mean: Whether to subtract the mean.
          variance_epsilon: A number that is added to the variance, so that constant
            values are not divided by 0.

        Returns:
          The normalized nest, in the dtypes of the specs; for integers, the numbers are
          truncated.

        Raises:
          ValueError: If a tensor does not have its spec's dtype and inner shape.
        """
        normalized = []
        for values, mean, variance, spec in zip(
            self._floats(tensor),
            *self._get_mean_var_estimates(),
            self._flat_specs,
            strict=True,
        ):
            # The mean is subtracted first; in the other order, large means cancel
            # digits.
            centered = values - mean if center_mean else values
            values = centered * tf.math.rsqrt(variance + variance_epsilon)
            if clip_value > 0:
                values = tf.clip_by_value(values, -clip_value, clip_value)
            normalized.append(tf.cast(values, spec.dtype))
        return self._pack(normalized)

    def _floats(self, tensor: Any) -> list[tf.Tensor]:
        self._check(tensor)
        return [
            tf.cast(values, self.map_dtype(spec.dtype))
            for values, spec in zip(
                tf.nest.flatten(tensor), self._flat_specs, strict=True
            )
        ]


class EMATensorNormalizer(TensorNormalizer):
    """Normalizes by exponential moving averages, which forget the distant past.

    The variance is averaged over squared differences from the moving mean, so that
    batches of 1 are enough.
    """

    def __init__(
        self,
        tensor_spec: Any,
        scope: str = "normalize_tensor",
        norm_update_rate: float = 0.001,
    ) -> None:
        """Creates a normalizer whose averages move by `norm_update_rate` per update."""
        super().__init__(tensor_spec, scope)
        self._norm_update_rate = norm_update_rate

    @property
    def variables(self) -> tuple[Any, Any]:
        """The moving means and the moving variances."""
        return self._pack(self._means), self._pack(self._variances)

    def _create_variables(self) -> None:
        def create(name: str, value: float) -> list[tf.Variable]:
            return [
                create_variable(name, value, spec.shape, self.map_dtype(spec.dtype))
                for spec in self._flat_specs
            ]

        self._means = create("mean", 0)
        # Without these carries, small steps of a large mean would be rounded away.
        self._carries = create("mean_carry", 0)
        self._variances = create("var", 1)

    def _update_ops(
        self,
        flat_tensors: list[tf.Tensor],
        outer_dims: Sequence[int],
        mask: tf.Tensor | None,
    ) -> None:
        for values, mean, carry, variance in zip(
            flat_tensors, self._means, self._carries, self._variances, strict=True
        ):
            if mask is None:
                shape = tf.gather(tf.shape(values), list(outer_dims))
                number = tf.cast(tf.reduce_prod(shape), values.dtype)
            else:
                number = tf.reduce_sum(tf.cast(mask, values.dtype))
            deviations = (values - mean) + carry
            changes = tf.square(deviations) - variance
            rate = tf.math.divide_no_nan(
                tf.cast(self._norm_update_rate, mean.dtype), number
            )
            variance.assign_add(rate * masked_sum(changes, mask, outer_dims))
            mean_step = rate * masked_sum(deviations, mask, outer_dims)
            new_mean, new_carry = kahan_summation(mean, carry, mean_step)
            mean.assign(new_mean)
            carry.assign(new_carry)

    def _get_mean_var_estimates(self) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        return self._means, self._variances


class StreamingTensorNormalizer(TensorNormalizer):
    """Normalizes by the mean and variance of all values so far, in compensated sums.

    The specs determine the outer dimensions; `outer_dims` is ignored.
    """

    @property
    def variables(self) -> tuple[Any, ...]:
        """The counts, means, sums of squared deviations, and the carries of these sums.

        The carries of the means are left out here, although checkpoints hold them.
        """
        names = ("count", "avg", "m2", "m2_carry")
        return tuple(
            self._pack([getattr(moments, name) for moments in self._moments])
            for name in names
        )

    def reset(self) -> None:
        """Forgets everything."""
        for moments in self._moments:
            moments.reset()

    def _create_variables(self) -> None:
        self._moments = [
            RunningMoments(spec.shape, self.map_dtype(spec.dtype))
            for spec in self._flat_specs
        ]

    def _update_ops(
        self,
        flat_tensors: list[tf.Tensor],
        outer_dims: Sequence[int],
        mask: tf.Tensor | None,
    ) -> None:
        del outer_dims
        for moments, values in zip(self._moments, flat_tensors, strict=True):
            moments.update(values, mask)

    def _get_mean_var_estimates(self) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        means = [moments.avg for moments in self._moments]
        variances = [
            tf.where(moments.count > 0, moments.variance(), tf.ones_like(moments.avg))
            for moments in self._moments
        ]
        return means, variances


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
