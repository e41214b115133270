"""A network for tests that applies a given layer."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import network
from tfrl.typing import types


class KerasLayersNet(network.Network):
    """Applies a layer; copies of the network share the layer."""

    def __init__(
        self,
        observation_spec: types.NestedTensorSpec,
        action_spec: types.NestedTensorSpec,
        layer: keras.layers.Layer,
        name: str | None = None,
    ):
        """Takes the layer.

        Args:
          observation_spec: The nest of observation specs.
          action_spec: Not used; accepted for the signature of other networks.
          layer: The layer that maps observations to outputs.
          name: The network's name.
        """
        del action_spec
        super().__init__(observation_spec, name=name)
        self._layer = layer

    def call(
        self, inputs: Any, step_type: Any = None, network_state: Any = ()
    ) -> tuple[tf.Tensor, Any]:
        """Returns the layer's output and the unchanged state."""
        del step_type
        return self._layer(inputs), network_state
