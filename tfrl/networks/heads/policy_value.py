"""PolicyValueHead: maps one embedding to the logits of a policy and a value."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfrl.networks.construction import recorded_layer
from tfrl.networks.layers import dense


@keras.saving.register_keras_serializable("tfrl")
class PolicyValueHead(recorded_layer.RecordedLayer):
    """Returns `(logits, value)` by two dense layers, as IMPALA's networks do."""

    def __init__(self, num_actions: int, **kwargs: Any):
        """Creates the layer.

        Args:
          num_actions: The number of actions.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        (self._policy_layer,) = dense.layers([num_actions])
        (self._value_layer,) = dense.layers([1])

    def call(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns logits `[..., num_actions]` and values `[...]` of `[..., n]`."""
        value = tf.squeeze(self._value_layer(inputs), axis=-1)
        return self._policy_layer(inputs), value
