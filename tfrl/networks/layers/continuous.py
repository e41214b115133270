"""Layers for continuous control: torsos with layer normalization, joined inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import module_network, utils
from tfrl.networks.construction import recorded_layer
from tfrl.networks.layers import dense, initializers


@keras.saving.register_keras_serializable("tfrl")
class LayerNormMLP(recorded_layer.RecordedLayer):
    """An MLP with layer normalization and `tanh` after its first dense layer.

    The inputs, a tensor or a nest of tensors `[B, ...]`, are flattened and joined
    first; see `utils.batch_concat`.
    """

    takes_one_outer_dim = True

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
          activate_final: Whether the last layer has the activation, too. The first
            layer has normalization and `tanh` in any case.
          **kwargs: Passed to `keras.layers.Layer`. A `dtype`, or dtype policy, also
            applies to the inner layers.

        Raises:
          ValueError: If there are no layers.
        """
        super().__init__(**kwargs)
        if not layer_sizes:
            raise ValueError(
                f"layer_sizes: got {layer_sizes}, expected the size of at least one "
                "layer; leave out a torso that has none."
            )
        first, *others = dense.layers(
            layer_sizes,
            w_init or initializers.uniform(),
            activation,
            activate_final,
            self.dtype_policy,
        )
        # The normalization comes before the first activation.
        first.activation = keras.activations.linear
        self._first = first
        self._norm = utils.layer_normalization(self.dtype_policy)
        self._others = others

    def call(self, inputs: Any) -> tf.Tensor:
        """Returns the embeddings, `[B, layer_sizes[-1]]`."""
        outputs = tf.tanh(self._norm(self._first(utils.batch_concat(inputs))))
        return dense.apply(self._others, outputs)


@keras.saving.register_keras_serializable("tfrl")
class LayerNormAndResidualMLP(recorded_layer.RecordedLayer):
    """A dense layer, and blocks `x -> LayerNorm(x + MLP(x))` of two dense layers."""

    def __init__(self, hidden_size: int, num_blocks: int, **kwargs: Any):
        """Creates the layer.

        Args:
          hidden_size: The number of units of every dense layer.
          num_blocks: The number of blocks.
          **kwargs: Passed to `keras.layers.Layer`. A `dtype`, or dtype policy, also
            applies to the inner layers.
        """
        super().__init__(**kwargs)
        dtype = self.dtype_policy
        (self._first,) = dense.layers(
            [hidden_size], initializers.uniform(), dtype=dtype
        )
        self._blocks = [
            _ResidualBlock(hidden_size, dtype=dtype) for _ in range(num_blocks)
        ]

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the embeddings `[..., hidden_size]` of inputs `[..., n]`."""
        return dense.apply(self._blocks, self._first(inputs))


class _ResidualBlock(keras.layers.Layer):
    def __init__(self, hidden_size: int, dtype: keras.DTypePolicy):
        super().__init__(dtype=dtype)
        self._mlp = dense.layers(
            [hidden_size, hidden_size], initializers.uniform(), dtype=dtype
        )
        self._norm = utils.layer_normalization(dtype)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return self._norm(inputs + dense.apply(self._mlp, inputs))


@keras.saving.register_keras_serializable("tfrl")
class NearZeroInitializedLinear(recorded_layer.RecordedLayer):
    """A dense layer without activation whose outputs are near 0 at the start."""

    def __init__(self, output_size: int, scale: float = 1e-4, **kwargs: Any):
        """Creates the layer.

        Args:
          output_size: The number of units.
          scale: The variance of the kernel is `scale / fan_in`.
          **kwargs: Passed to `keras.layers.Layer`. A `dtype`, or dtype policy, also
            applies to the inner layers.
        """
        super().__init__(**kwargs)
        (self._dense,) = dense.layers(
            [output_size], initializers.near_zero(scale), dtype=self.dtype_policy
        )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the outputs `[..., output_size]` of inputs `[..., n]`."""
        return self._dense(inputs)


@keras.saving.register_keras_serializable("tfrl")
class CriticMultiplexer(recorded_layer.RecordedLayer):
    """Returns `critic_network(join(observation_network(o), action_network(a)))`.

    Each of the networks may be a Keras layer, a stateless Network or a function, or
    None, which passes its input on unchanged. `join` is `utils.batch_concat` after
    a cast to the layer's dtype, float32 by default.

    Call it with a pair, `multiplexer((observation, action))`, as a critic of this
    package is called, or with two arguments, `multiplexer(observation, action)`.
    """

    takes_one_outer_dim = True

    def __init__(
        self,
        critic_network: Any = None,
        observation_network: Any = None,
        action_network: Any = None,
        **kwargs: Any,
    ):
        """Takes the networks, which are not copied, so that weights can be shared.

        Args:
          critic_network: Takes the joined observation and action, `[B, n]`.
          observation_network: Takes the observation, a nest of `[B, ...]`.
          action_network: Takes the action, a nest of `[B, ...]`.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        # The networks get uint8 images and integer actions unchanged.
        super().__init__(**{"autocast": False, **kwargs})
        self.critic_network = module_network.as_layer(critic_network)
        self.observation_network = module_network.as_layer(observation_network)
        self.action_network = module_network.as_layer(action_network)

    def call(self, observation: Any, action: Any = None, training: bool = False) -> Any:
        """Returns the output of the critic network.

        Args:
          observation: A nest of tensors `[B, ...]`, or a pair of this nest and the
            action.
          action: A nest of tensors `[B, ...]`; None if `observation` is a pair.
          training: Passed to the networks.
        """
        if action is None:
            observation, action = observation
        joined = [
            _apply(self.observation_network, observation, training),
            _apply(self.action_network, action, training),
        ]
        cast = tf.nest.map_structure(lambda x: tf.cast(x, self.compute_dtype), joined)
        return _apply(self.critic_network, utils.batch_concat(cast), training)


def _apply(layer: Any, inputs: Any, training: bool) -> Any:
    return inputs if layer is None else utils.call_layer(layer, inputs, training)
