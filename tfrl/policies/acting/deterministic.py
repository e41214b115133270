"""The distribution of an action that is certain; importing the module imports TFP."""

from __future__ import annotations

import tensorflow as tf
import tensorflow_probability as tfp


@tfp.experimental.auto_composite_tensor
class DeterministicWithLogProb(tfp.distributions.Deterministic):
    """A `Deterministic` whose log-probabilities are float32, even for integers.

    TFP's class computes them in the dtype of `loc`, which has no logarithm if it is an
    integer dtype.
    """

    def _log_prob(self, x: tf.Tensor) -> tf.Tensor:
        return tf.math.log(tf.cast(self.prob(x), tf.float32))
