"""Embeddings of the fractions of quantiles, for implicit quantile networks."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf
from typing_extensions import override

from tfrl.networks.layers import initializers


def cosine_features(fractions: tf.Tensor, num_cosines: int) -> tf.Tensor:
    """Returns `cos(pi i tau)` for `i = 0, ..., num_cosines - 1`, `[..., num_cosines]`.

    See Dabney et al., "Implicit quantile networks for distributional reinforcement
    learning", 2018, equation 4.

    Args:
      fractions: The fractions tau, floats `[...]`.
      num_cosines: The number of features of each.
    """
    multiples = math.pi * tf.range(num_cosines, dtype=fractions.dtype)
    return tf.cos(fractions[..., tf.newaxis] * multiples)


class ProductWithFractions(keras.layers.Layer):
    """Multiplies embeddings by embeddings of fractions, which have the same size."""

    def __init__(self, num_cosines: int, **kwargs: Any):
        """Creates the layer.

        Args:
          num_cosines: The number of cosine features of a fraction.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self._num_cosines = num_cosines
        self._initializer = initializers.truncated()

    @override
    def build(self, inputs_shape: Any, fractions_shape: Any) -> None:
        """Creates the weights."""
        size = inputs_shape[-1]
        self._kernel = self.add_weight(
            shape=(self._num_cosines, size), initializer=self._initializer
        )
        self._bias = self.add_weight(shape=(size,), initializer="zeros")

    def call(self, inputs: tf.Tensor, fractions: tf.Tensor) -> tf.Tensor:
        """Returns the products, `[..., N, n]`."""
        features = cosine_features(fractions, self._num_cosines)
        kernel, bias = map(tf.convert_to_tensor, (self._kernel, self._bias))
        embedded = tf.nn.relu(tf.tensordot(features, kernel, axes=1) + bias)
        return inputs[..., tf.newaxis, :] * embedded
