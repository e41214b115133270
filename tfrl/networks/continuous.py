"""Torsos for continuous control: MLPs with layer normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import initializers, recorded_layer, utils
from tfrl.utils import tf2_utils

# Sonnet's value; that of Keras is 1e-3.
_LAYER_NORM_EPSILON = 1e-5


@keras.saving.register_keras_serializable("tfrl")
class LayerNormMLP(recorded_layer.RecordedLayer):
    """An MLP with layer normalization and `tanh` after its first dense layer.

    The inputs, a tensor or a nest of tensors `[B, ...]`, are flattened and joined
    first; see `tf2_utils.batch_concat`.
    """

    def __init__(
        self,
        layer_sizes: Sequence[int],
        w_init: Any = None,
        activation: utils.Activation = "elu",
        activate_final: bool = False,
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          layer_sizes: The number of units of each dense layer, at least one.
          w_init: The initialiser of the kernels; by default `initializers.uniform`.
          activation: The activation of the dense layers after the first.
          activate_final: Whether the last layer has the activation, too. A single
            layer always has normalization and `tanh`.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If there are no layers.
        """
        super().__init__(**kwargs)
        if not layer_sizes:
            raise ValueError(
                f"layer_sizes: got {layer_sizes}, expected the size of at least one "
                "layer; leave out a torso that has none."
            )
        kernels = initializers.copies(
            w_init or initializers.uniform(), len(layer_sizes)
        )
        self._first = keras.layers.Dense(layer_sizes[0], kernel_initializer=kernels[0])
        self._norm = keras.layers.LayerNormalization(epsilon=_LAYER_NORM_EPSILON)
        last = len(layer_sizes) - 1
        self._others = [
            keras.layers.Dense(
                layer_sizes[i],
                activation=activation if i < last or activate_final else None,
                kernel_initializer=kernels[i],
            )
            for i in range(1, len(layer_sizes))
        ]

    def call(self, inputs: Any) -> tf.Tensor:
        """Returns the embeddings, `[B, layer_sizes[-1]]`."""
        outputs = tf.tanh(self._norm(self._first(tf2_utils.batch_concat(inputs))))
        for layer in self._others:
            outputs = layer(outputs)
        return outputs
