"""A layer that adds a learned vector to its input."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


class BiasLayer(keras.layers.Layer):
    """Adds a bias `[n]` to inputs `[B, ..., n]`, or a single number to inputs `[B]`."""

    def __init__(self, bias_initializer: Any = "zeros", **kwargs: Any):
        """Creates the layer.

        Args:
          bias_initializer: The initialiser of the bias, or its Keras name.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the bias, with the size of the inputs' last dimension."""
        size = 1 if len(input_shape) == 1 else input_shape[-1]
        self.bias = self.add_weight(
            name="bias", shape=(size,), initializer=self.bias_initializer
        )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns `inputs` plus the bias."""
        return inputs + tf.convert_to_tensor(self.bias)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns `input_shape`."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        initializer = keras.initializers.serialize(self.bias_initializer)
        return {**super().get_config(), "bias_initializer": initializer}
