"""`DiscreteValuedDistribution`, a Categorical over given numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp
from typing_extensions import override


class DiscreteValuedDistribution(tfp.distributions.Categorical):
    """A distribution over the numbers `values`, such as the atoms of C51's returns.

    As in Acme, all axes but the last of values `[*E, K]` are axes of the event: an
    event is an array of shape `E`, whose numbers are independent and have `K` possible
    values each. With values `[K]`, an event is a single number.

    `sample()`, `mode()`, `mean()` and `variance()` refer to the values. Entropies and
    KL divergences depend on the probabilities alone, so a KL divergence expects two
    distributions over the same values. `log_prob(x)` is the logarithm of the total
    probability of the values that equal `x`, and `-inf` if there are none.
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
          values: The values, floats `[*E, K]`, which the batch shares. Dimensions of 1
            broadcast to the dimensions of the logits or probabilities.
          logits: The logits, `[..., *E, K]`.
          probs: The probabilities, `[..., *E, K]`.
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
        self._event_rank = values.shape.rank - 1

    @property
    def values(self) -> tf.Tensor:
        """The possible values, `[*E, K]`."""
        return self._values

    @classmethod
    @override
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> Any:
        of = tfp.util.ParameterProperties
        return {
            "values": of(event_ndims=None),
            "logits": of(event_ndims=_values_rank),
            "probs": of(event_ndims=_values_rank, is_preferred=False),
        }

    def at(self, indices: tf.Tensor) -> tf.Tensor:
        """Returns the values at `indices`, integers `[..., *batch_shape, *E]`."""
        num_values = self._values.shape[-1] or tf.shape(self._values)[-1]
        chosen = tf.one_hot(indices, num_values, dtype=self._values.dtype)
        return tf.reduce_sum(chosen * self._values, axis=-1)

    def _sample_n(self, n: Any, seed: Any = None) -> tf.Tensor:
        indices = self._each(self.dtype).sample(n, seed=seed)
        return self.at(tf.cast(indices, tf.int32))

    def _log_prob(self, value: Any) -> tf.Tensor:
        log_probs = tf.nn.log_softmax(self.logits_parameter())
        is_value = tf.equal(self._values, _per_value(value, self._values))
        impossible = tf.constant(-float("inf"), log_probs.dtype)
        each = tf.reduce_logsumexp(tf.where(is_value, log_probs, impossible), axis=-1)
        return self._over_event(tf.reduce_sum, each)

    def _cdf(self, value: Any) -> tf.Tensor:
        is_below = self._values <= _per_value(value, self._values)
        probs = self.probs_parameter()
        each = tf.reduce_sum(tf.where(is_below, probs, tf.zeros_like(probs)), axis=-1)
        return self._over_event(tf.reduce_prod, each)

    def _entropy(self) -> tf.Tensor:
        return self._over_event(tf.reduce_sum, super()._entropy())

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

    def _each(self, dtype: Any = tf.int32) -> Any:
        """Returns a batch of distributions over the indices of the values."""
        return tfp.distributions.Categorical(
            logits=self.logits_parameter(), dtype=dtype
        )

    def _over_event(self, reduce: Callable[..., tf.Tensor], each: Any) -> tf.Tensor:
        """Reduces the numbers of the event, the last axes of `each`."""
        rank = self._event_rank
        return reduce(each, axis=list(range(-rank, 0))) if rank else each

    def _event_shape(self) -> tf.TensorShape:
        return self._given().shape[-self._event_rank - 1 : -1]

    def _event_shape_tensor(self) -> tf.Tensor:
        return tf.shape(self._given())[-self._event_rank - 1 : -1]

    def _given(self) -> tf.Tensor:
        return self.probs if self.logits is None else self.logits

    def _default_event_space_bijector(self) -> None:
        return None


@tfp.distributions.RegisterKL(DiscreteValuedDistribution, DiscreteValuedDistribution)
def _kl_divergence(
    a: DiscreteValuedDistribution,
    b: DiscreteValuedDistribution,
    name: str | None = None,
) -> tf.Tensor:
    each = a._each().kl_divergence(b._each(), name=name or "kl_divergence")
    return a._over_event(tf.reduce_sum, each)


def _values_rank(distribution: DiscreteValuedDistribution) -> int:
    return distribution.values.shape.rank


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
