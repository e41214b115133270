"""A stack of dense layers that are computed together."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


class StackedDense(keras.layers.Layer):
    """Applies `num_layers` dense layers, each to its own input, in one batched product.

    Inputs are `[num_layers, B, n]`, or `[B, n]`, which all layers share; outputs are
    `[num_layers, B, units]`.
    """

    def __init__(
        self,
        num_layers: int,
        units: int,
        activation: Any = None,
        kernel_initializers: Any = "glorot_uniform",
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          num_layers: The number of dense layers.
          units: The number of outputs of each layer.
          activation: The activation, or its Keras name.
          kernel_initializers: A list of initialisers, one for each layer's kernel; or
            one initialiser for all kernels, which should have no seed.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If the number of initialisers differs from the number of layers.
        """
        super().__init__(**kwargs)
        if not isinstance(kernel_initializers, list | tuple):
            kernel_initializers = [kernel_initializers] * num_layers
        if len(kernel_initializers) != num_layers:
            raise ValueError(
                f"kernel_initializers: got {len(kernel_initializers)}, expected "
                f"{num_layers}, one for each layer; or give a single one."
            )
        self.num_layers = num_layers
        self.units = units
        self.activation = keras.activations.get(activation)
        self.kernel_initializers = [
            keras.initializers.get(initializer) for initializer in kernel_initializers
        ]

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the kernels, `[num_layers, n, units]`, and the biases."""
        size = input_shape[-1]

        def initialize(shape: tuple[int, ...], dtype: Any = None) -> Any:
            # The kernels are made one by one, so that each initialiser gets the shape
            # of one kernel.
            kernels = [init(shape[1:], dtype) for init in self.kernel_initializers]
            return keras.ops.stack(kernels)

        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.num_layers, size, self.units),
            initializer=initialize,
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.num_layers, 1, self.units), initializer="zeros"
        )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the outputs, `[num_layers, B, units]`."""
        kernel = tf.convert_to_tensor(self.kernel)
        outputs = tf.matmul(inputs, kernel) + tf.convert_to_tensor(self.bias)
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the shape of the outputs."""
        return (self.num_layers, input_shape[-2], self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "units": self.units,
            "activation": keras.activations.serialize(self.activation),
            "kernel_initializers": [
                keras.initializers.serialize(initializer)
                for initializer in self.kernel_initializers
            ],
        }
