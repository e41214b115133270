"""Normalizes observations and rewards by their running mean and variance."""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.utils import nest_utils
from tfrl.utils.normalizers.running_moments import (
    RunningMoments,
    kahan_summation,
    masked_sum,
    parallel_variance_calculation,
)
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
