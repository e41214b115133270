"""DiscreteValuedDistribution: a Categorical over given numbers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp


class DiscreteValuedDistribution(tfp.distributions.Categorical):
    """A distribution over the numbers `values`, such as the atoms of C51's returns.

    `sample()`, `mode()`, `mean()` and `variance()` are about the values; entropies and
    KL divergences are about the probabilities alone, so a KL divergence expects two
    distributions over the same values. `log_prob(x)` adds up the values that equal `x`;
    it is `-inf` if there is none.
    """

    def __init__(
        self,
        values: Any,
        logits: Any = None,
        probs: Any = None,
        name: str = "DiscreteValuedDistribution",
    ):
        """Creates the distribution; give either `logits` or `probs`.

        Args:
          values: The values, floats `[..., K]`. Their shape broadcasts to the shape of
            the logits or probabilities: values `[K]` are shared by the batch.
          logits: The logits, `[..., K]`.
          probs: The probabilities, `[..., K]`.
          name: The distribution's name.

        Raises:
          ValueError: If `values` do not fit the logits or probabilities.
        """
        parameters = dict(locals())
        given = tf.convert_to_tensor(probs if logits is None else logits)
        values = tf.convert_to_tensor(values, dtype_hint=given.dtype)
        _check_shapes(values.shape, given.shape)
        super().__init__(logits=logits, probs=probs, dtype=values.dtype, name=name)
        self._parameters = parameters
        self._values = values

    @property
    def values(self) -> tf.Tensor:
        """The numbers that the distribution is over, `[..., K]`."""
        return self._values

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> Any:
        properties = super()._parameter_properties(dtype, num_classes=num_classes)
        return {**properties, "values": tfp.util.ParameterProperties(event_ndims=1)}

    def at(self, indices: tf.Tensor) -> tf.Tensor:
        """Returns the values at `indices`, integers `[..., *batch_shape]`."""
        num_values = self._values.shape[-1] or tf.shape(self._values)[-1]
        chosen = tf.one_hot(indices, num_values, dtype=self._values.dtype)
        return tf.reduce_sum(chosen * self._values, axis=-1)

    def _sample_n(self, n: Any, seed: Any = None) -> tf.Tensor:
        return self.at(tf.cast(super()._sample_n(n, seed=seed), tf.int32))

    def _log_prob(self, value: Any) -> tf.Tensor:
        log_probs = tf.nn.log_softmax(self.logits_parameter())
        is_value = tf.equal(self._values, _per_value(value, self._values))
        impossible = tf.constant(-float("inf"), log_probs.dtype)
        return tf.reduce_logsumexp(tf.where(is_value, log_probs, impossible), axis=-1)

    def _cdf(self, value: Any) -> tf.Tensor:
        is_below = self._values <= _per_value(value, self._values)
        probs = self.probs_parameter()
        return tf.reduce_sum(tf.where(is_below, probs, tf.zeros_like(probs)), axis=-1)

    def _mode(self) -> tf.Tensor:
        logits = self.logits_parameter()
        return self.at(tf.argmax(logits, axis=-1, output_type=tf.int32))

    def _mean(self) -> tf.Tensor:
        return tf.reduce_sum(self._probabilities() * self._values, axis=-1)

    def _variance(self) -> tf.Tensor:
        deviations = self._values - self._mean()[..., tf.newaxis]
        return tf.reduce_sum(self._probabilities() * tf.square(deviations), axis=-1)

    def _probabilities(self) -> tf.Tensor:
        return tf.cast(self.probs_parameter(), self._values.dtype)

    def _default_event_space_bijector(self) -> None:
        return None


def _per_value(number: Any, values: tf.Tensor) -> tf.Tensor:
    return tf.convert_to_tensor(number, dtype=values.dtype)[..., tf.newaxis]


def _check_shapes(values: tf.TensorShape, parameters: tf.TensorShape) -> None:
    try:
        fits = tf.broadcast_static_shape(values, parameters).is_compatible_with(
            parameters
        )
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"values: got shape {values} with logits or probs of shape {parameters}, "
            "expected a shape [..., K] that broadcasts to the other; give one value "
            "for each logit."
        )
