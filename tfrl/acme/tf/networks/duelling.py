"""DuellingMLP: action values as a state's value plus the actions' advantages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks.construction import recorded_layer
from tfrl.networks.layers import dense


@keras.saving.register_keras_serializable("tfrl")
class DuellingMLP(recorded_layer.RecordedLayer):
    """Returns `V(x) + A(x, a) - mean over a of A(x, a)`; V and A are separate MLPs.

    See Wang et al., "Dueling network architectures for deep reinforcement learning",
    2016, equation 9.
    """

    def __init__(self, num_actions: int, hidden_sizes: Sequence[int], **kwargs: Any):
        """Creates the layer.

        Args:
          num_actions: The number of actions.
          hidden_sizes: The number of units of the hidden layers of each MLP.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self._value_mlp = dense.layers([*hidden_sizes, 1])
        self._advantage_mlp = dense.layers([*hidden_sizes, num_actions])

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns action values `[..., num_actions]` of embeddings `[..., n]`."""
        advantages = dense.apply(self._advantage_mlp, inputs)
        advantages -= tf.reduce_mean(advantages, axis=-1, keepdims=True)
        return dense.apply(self._value_mlp, inputs) + advantages
