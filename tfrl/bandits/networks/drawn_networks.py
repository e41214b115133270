"""Networks of rewards of which one is drawn: by dropout, or from an ensemble."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.bandits.networks import heteroscedastic_q_network, network_outputs
from tfrl.keras_layers import stacked_dense
from tfrl.networks.construction import seeding
from tfrl.utils.random_numbers import seeds


class DropoutRewardNetwork(network_outputs.RewardNetwork):
    """Maps an observation to rewards `[B, A]`; each seed draws another network.

    `draw` drops units as a pure function of a seed, and each row has a mask of its own.
    A call as of other networks drops none.
    """

    def __init__(
        self,
        input_tensor_spec: Any,
        num_actions: int,
        layers: Sequence[int],
        dropout_rate: float | Callable[[], Any],
        dropout_only_top_layer: bool = True,
        heteroscedastic: bool = False,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Makes the layers.

        Args:
          input_tensor_spec: The spec of an observation, one tensor.
          num_actions: The number of arms, A.
          layers: The numbers of units of the hidden layers.
          dropout_rate: The share of units to drop, or a function that returns it.
          dropout_only_top_layer: Whether only the last hidden layer drops units.
          heteroscedastic: Whether the output is a `QBanditNetworkResult`, with
            variances from 0.1 to 10,000.
          name: The network's name.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.

        Raises:
          ValueError: There are no layers, or the rate is not in [0, 1).
        """
        if not layers:
            raise ValueError(
                "layers: got none, expected at least one hidden layer, which drops "
                "units; add one."
            )
        if not callable(dropout_rate) and not 0 <= dropout_rate < 1:
            raise ValueError(
                f"dropout_rate: got {dropout_rate}, expected a number in [0, 1), or a "
                "function that returns one; 0.1 is usual."
            )
        super().__init__(input_tensor_spec=input_tensor_spec, name=name)
        stream = seeding.SeedStream(seed)

        def dense(units: int, activation: str | None = None) -> keras.layers.Dense:
            initializer = keras.initializers.GlorotUniform(stream())
            return keras.layers.Dense(units, activation, kernel_initializer=initializer)

        self._hidden = [dense(units, "relu") for units in layers]
        self._heads = [dense(num_actions) for _ in range(1 + heteroscedastic)]
        self._rate = dropout_rate
        self._first = len(layers) - 1 if dropout_only_top_layer else 0

    def _rewards(self, observation: Any, training: bool) -> Any:
        del training
        return self.draw(observation, None)

    def draw(self, observation: tf.Tensor, seed: tf.Tensor | None) -> Any:
        """Returns the rewards of a network that a seed draws.

        Args:
          observation: `[B, ...]`.
          seed: A stateless seed; None drops no units.
        """
        x = _flat(observation)
        for i, layer in enumerate(self._hidden):
            x = layer(x)
            if seed is not None and i >= self._first:
                x = self._dropped(x, seed + i)
        outputs = [head(x) for head in self._heads]
        if len(outputs) == 1:
            return outputs[0]
        mean, raw = outputs
        return heteroscedastic_q_network.QBanditNetworkResult(
            mean, heteroscedastic_q_network.log_variance(raw)
        )

    def _dropped(self, x: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        rate = tf.cast(self._rate() if callable(self._rate) else self._rate, tf.float32)
        kept = seeds.uniform(seed, tf.shape(x)) >= rate
        return tf.where(kept, x / (1 - rate), 0.0)


class EnsembleRewardNetwork(network_outputs.RewardNetwork):
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

    def _rewards(self, observation: Any, training: bool) -> tf.Tensor:
        del training
        x = _flat(observation)
        for layer in self._stack:
            x = layer(x)
        return tf.transpose(x, [1, 0, 2])


def _flat(observation: tf.Tensor) -> tf.Tensor:
    """Returns observations `[B, ...]` as float32 `[B, d]`."""
    x = tf.cast(observation, tf.float32)
    return tf.reshape(x, [-1, x.shape[1:].num_elements()])
