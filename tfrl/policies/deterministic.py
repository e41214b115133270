"""The distribution of a certain action; importing this module imports TFP."""

from __future__ import annotations

import tensorflow as tf
import tensorflow_probability as tfp


@tfp.experimental.auto_composite_tensor
class DeterministicWithLogProb(tfp.distributions.Deterministic):
    """A `Deterministic` with log-probabilities for integers too, float32.

    TFP's own computes them in the dtype of `loc`, and an integer has no logarithm.
    """

    def _log_prob(self, x: tf.Tensor) -> tf.Tensor:
        return tf.math.log(tf.cast(self.prob(x), tf.float32))
