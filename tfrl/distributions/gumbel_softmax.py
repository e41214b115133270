"""`GumbelSoftmax`, a relaxed one-hot Categorical with reparameterized samples.

Jang, Gu and Poole, "Categorical reparameterization with Gumbel-softmax" (2017);
Maddison et al., "The concrete distribution" (2017), which gives the density.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp
from typing_extensions import override

# Keeps the density finite where a sample touches the edge of the simplex.
_EPSILON = 1e-10


class GumbelSoftmax(tfp.distributions.RelaxedOneHotCategorical):
    """A `RelaxedOneHotCategorical` that has a mode and a density that stays finite.

    Samples are float vectors `[..., K]` on the simplex. A lower temperature brings them
    closer to one-hot vectors.
    """

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = tf.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "GumbelSoftmax",
    ):
        """Creates the distribution.

        Args:
          temperature: A positive number or tensor, broadcast with `logits[..., 0]`.
          logits: The logits of the K classes, `[..., K]`.
          probs: The probabilities of the classes, `[..., K]`, instead of `logits`.
          dtype: The dtype of the one-hot vectors that `mode` and `convert_to_one_hot`
            return.
          validate_args: As in TFP.
          allow_nan_stats: As in TFP.
          name: The distribution's name.
        """
        parameters = dict(locals())
        super().__init__(
            temperature=temperature,
            logits=logits,
            probs=probs,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            name=name,
        )
        self._parameters = parameters
        self._one_hot_dtype = tf.as_dtype(dtype)

    def log_prob(self, value: Any, name: str = "log_prob", **kwargs: Any) -> tf.Tensor:
        """Returns log densities of relaxed samples or log-probabilities of one-hots.

        Args:
          value: The samples, `[..., K]`: relaxed samples if they are floats, one-hot
            vectors if they are integers.
          name: The name of the operation.
          **kwargs: As in TFP.
        """
        value = tf.convert_to_tensor(value)
        if value.dtype.is_floating:
            return super().log_prob(value + _EPSILON, name=name, **kwargs)
        log_probs = tf.math.log_softmax(self.distribution.logits_parameter())
        return tf.reduce_sum(tf.cast(value, log_probs.dtype) * log_probs, axis=-1)

    def convert_to_one_hot(self, samples: Any) -> tf.Tensor:
        """Returns one-hot vectors `[..., K]` that mark the largest entries."""
        samples = tf.convert_to_tensor(samples)
        return tf.one_hot(
            tf.argmax(samples, axis=-1),
            samples.shape[-1] or tf.shape(samples)[-1],
            dtype=self._one_hot_dtype,
        )

    @override
    def _mode(self, **kwargs: Any) -> tf.Tensor:
        return self.convert_to_one_hot(self.distribution.logits_parameter())
