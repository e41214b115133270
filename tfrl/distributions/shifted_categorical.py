"""`ShiftedCategorical`, a Categorical whose smallest value is not 0."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp


class ShiftedCategorical(tfp.distributions.Categorical):
    """A Categorical over `shift, ..., shift + K - 1`.

    It serves action specs with a minimum other than 0.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = tf.int32,
        force_probs_to_zero_outside_support: bool = False,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        shift: Any = None,
        name: str = "ShiftedCategorical",
    ):
        """Creates the distribution; see `Categorical` for further arguments.

        Args:
          logits: The logits, `[..., K]`; give either `logits` or `probs`.
          probs: The probabilities, `[..., K]`.
          dtype: The dtype of the samples.
          force_probs_to_zero_outside_support: As in TFP.
          validate_args: As in TFP.
          allow_nan_stats: As in TFP.
          shift: The smallest value; broadcasts against the batch shape.
          name: The distribution's name.

        Raises:
          ValueError: If `shift` is missing.
        """
        if shift is None:
            raise ValueError(
                "shift: got None, ShiftedCategorical expects a shift value; pass the "
                "minimum of the action spec, or use a Categorical."
            )
        parameters = dict(locals())
        super().__init__(
            logits=logits,
            probs=probs,
            dtype=dtype,
            force_probs_to_zero_outside_support=force_probs_to_zero_outside_support,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            name=name,
        )
        self._parameters = parameters
        self._shift = shift

    @property
    def shift(self) -> Any:
        """The smallest value."""
        return self._shift

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> Any:
        properties = super()._parameter_properties(dtype, num_classes=num_classes)
        return {**properties, "shift": tfp.util.ParameterProperties(event_ndims=0)}

    def _sample_n(self, n: Any, seed: Any = None) -> tf.Tensor:
        return super()._sample_n(n, seed) + self._shift_as(self.dtype)

    def _log_prob(self, value: Any) -> tf.Tensor:
        return super()._log_prob(self._unshifted(value))

    def _cdf(self, value: Any) -> tf.Tensor:
        return super()._cdf(self._unshifted(value))

    def _mode(self) -> tf.Tensor:
        return super()._mode() + self._shift_as(self.dtype)

    def _mean(self) -> tf.Tensor:
        mean = super()._mean()
        return mean + self._shift_as(mean.dtype)

    def _sample_control_dependencies(self, x: tf.Tensor) -> Any:
        return super()._sample_control_dependencies(self._unshifted(x))

    def _unshifted(self, value: Any) -> tf.Tensor:
        value = tf.convert_to_tensor(value)
        return value - self._shift_as(value.dtype)

    def _shift_as(self, dtype: Any) -> tf.Tensor:
        return tf.cast(self._shift, dtype)


def over(spec: Any, *, logits: Any = None, probs: Any = None) -> Any:
    """Returns a categorical distribution over the integers of a spec.

    Args:
      spec: A bounded spec of integers. With a minimum of 0 the distribution is TFP's
        own `Categorical`.
      logits: The logits, `[..., K]`; give either `logits` or `probs`.
      probs: The probabilities, `[..., K]`.
    """
    arguments = {"logits": logits, "probs": probs, "dtype": spec.dtype}
    if (spec.minimum == 0).all():
        return tfp.distributions.Categorical(**arguments)
    return ShiftedCategorical(**arguments, shift=spec.minimum)
