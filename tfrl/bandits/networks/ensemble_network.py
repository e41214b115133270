"""`EnsembleRewardNetwork`: several networks of rewards, computed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.keras_layers import stacked_dense
from tfrl.networks import network
from tfrl.networks.construction import seeding


class EnsembleRewardNetwork(network.Network):
    """Maps an observation to the rewards of each of K networks, `[B, K, A]`.

    The networks differ in their first weights. Each layer is one batched product.
    """

    def __init__(
        self,
        input_tensor_spec: Any,
        num_actions: int,
        layers: Sequence[int],
        num_heads: int,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Makes the layers.

        Args:
          input_tensor_spec: The spec of an observation, one tensor.
          num_actions: The number of arms, A.
          layers: The numbers of units of the hidden layers.
          num_heads: The number of networks, K.
          name: The network's name.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.
        """
        super().__init__(input_tensor_spec=input_tensor_spec, name=name)
        stream = seeding.SeedStream(seed)

        def stacked(units: int, activation: str | None) -> stacked_dense.StackedDense:
            initializers = [
                keras.initializers.GlorotUniform(stream()) for _ in range(num_heads)
            ]
            return stacked_dense.StackedDense(
                num_heads, units, activation, initializers
            )

        self._stack = [stacked(units, "relu") for units in layers]
        self._stack.append(stacked(num_actions, None))

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[tf.Tensor, Any]:
        """Returns the rewards `[B, K, A]`, and the state."""
        del step_type, training
        x = tf.cast(observation, tf.float32)
        x = tf.reshape(x, [-1, x.shape[1:].num_elements()])
        for layer in self._stack:
            x = layer(x)
        return tf.transpose(x, [1, 0, 2]), network_state
