"""Multihead: several heads on one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import module_network, utils
from tfrl.networks.construction import recorded_layer


@keras.saving.register_keras_serializable("tfrl")
class Multihead(recorded_layer.RecordedLayer):
    """Applies N heads to its input, and stacks their outputs along a new last axis."""

    def __init__(self, network_heads: Sequence[Any], **kwargs: Any):
        """Takes the heads, which are not copied, so that weights can be shared.

        Args:
          network_heads: Keras layers, stateless Networks or functions.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If there are no heads.
        """
        super().__init__(**{"autocast": False, **kwargs})
        if not network_heads:
            raise ValueError(
                f"network_heads: got {network_heads!r}, expected at least one head; "
                "add a layer."
            )
        self.network_heads = [module_network.as_layer(head) for head in network_heads]

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Returns the stacked outputs `[..., N]`; distributions are returned as a list.

        Args:
          inputs: The input of each head.
          training: Passed to the heads.
        """
        outputs = [
            utils.call_layer(head, inputs, training) for head in self.network_heads
        ]
        if utils.is_distribution(outputs[0]):
            return outputs
        return tf.stack(outputs, axis=-1)
