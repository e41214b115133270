"""Stacks of dense layers inside other layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import utils
from tfrl.networks.layers import initializers


def layers(
    layer_sizes: Sequence[int],
    w_init: Any = None,
    activation: utils.Activation = "relu",
    activate_final: bool = False,
    dtype: Any = None,
) -> list[keras.layers.Layer]:
    """Makes dense layers that `tfrl.networks.construction.seeding` can seed.

    Args:
      layer_sizes: The number of units of each layer.
      w_init: The initialiser of the kernels; each layer gets a copy. By
        default `initializers.truncated`.
      activation: The activation of the layers.
      activate_final: Whether the last layer has the activation, too.
      dtype: The dtype of all layers, or their Keras dtype policy; None takes Keras's
        default.
    """
    kernels = initializers.copies(w_init or initializers.truncated(), len(layer_sizes))
    last = len(layer_sizes) - 1
    return [
        keras.layers.Dense(
            utils.units(size),
            activation=activation if i < last or activate_final else None,
            kernel_initializer=kernel,
            dtype=dtype,
        )
        for i, (size, kernel) in enumerate(zip(layer_sizes, kernels, strict=True))
    ]


def apply(dense_layers: Sequence[keras.layers.Layer], inputs: tf.Tensor) -> tf.Tensor:
    """Applies the layers in turn to `[..., n]`."""
    for layer in dense_layers:
        inputs = layer(inputs)
    return inputs
