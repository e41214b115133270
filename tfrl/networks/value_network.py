"""ValueNetwork: maps observations to one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import encoding_network, network, utils
from tfrl.networks.construction import seeding
from tfrl.typing import types


class EncoderValueNetwork(network.Network):
    """Base class of networks with an encoder and a dense layer of one unit."""

    def __init__(
        self,
        encoder: network.Network,
        value_kernel_initializer: Any,
        name: str | None,
        *,
        seeds: seeding.SeedStream,
    ):
        """Makes the last layer, which is float32.

        Args:
          encoder: A network from the observations to a hidden state `[B(, T), n]`.
          value_kernel_initializer: As for `ValueNetwork`.
          name: The network's name.
          seeds: The stream of the seed of the last layer.
        """
        super().__init__(
            input_tensor_spec=encoder.input_tensor_spec,
            state_spec=encoder.state_spec,
            name=name,
        )
        self._encoder = encoder
        self._value_layer = keras.layers.Dense(
            1,
            kernel_initializer=seeding.clone_initializer(
                value_kernel_initializer
                or keras.initializers.RandomUniform(-0.03, 0.03),
                seeds(),
            ),
            dtype="float32",
            name="value",
        )

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[tf.Tensor, Any]:
        """Returns the values `[B(, T)]` and the state after the last step."""
        encoding, network_state = self._encoder(
            observation, step_type, network_state, training=training
        )
        return tf.squeeze(self._value_layer(encoding), -1), network_state


class ValueNetwork(EncoderValueNetwork):
    """Maps observations `[B, ...]` to values, float `[B]`.

    The network is an `EncodingNetwork` and a dense layer of one unit.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        fc_layer_params: Sequence[int] | None = (75, 40),
        dropout_layer_params: Sequence[Any] | None = None,
        activation_fn: utils.Activation = keras.activations.relu,
        kernel_initializer: Any = None,
        batch_squash: bool = True,
        dtype: Any = tf.float32,
        name: str | None = "ValueNetwork",
        *,
        seed: int | None = None,
        value_kernel_initializer: Any = None,
    ):
        """Creates the network; see `EncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          fc_layer_params: As for `EncodingNetwork`.
          dropout_layer_params: As for `EncodingNetwork`.
          activation_fn: As for `EncodingNetwork`.
          kernel_initializer: The encoder's kernel initialiser; by default Glorot
            uniform.
          batch_squash: As for `EncodingNetwork`.
          dtype: The dtype of the encoder. The value is float32.
          name: The network's name.
          seed: Seeds the initialisers and dropout; None follows `tf.random.set_seed`.
          value_kernel_initializer: The initialiser of the last layer's kernel; by
            default uniform in [-0.03, 0.03].
        """
        seeds = seeding.SeedStream(seed)
        encoder = encoding_network.EncodingNetwork(
            input_tensor_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            conv_layer_params=conv_layer_params,
            fc_layer_params=fc_layer_params,
            dropout_layer_params=dropout_layer_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer or "glorot_uniform",
            batch_squash=batch_squash,
            dtype=dtype,
            seed=seeds(),
        )
        super().__init__(encoder, value_kernel_initializer, name, seeds=seeds)

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[tf.Tensor, Any]:
        """Returns the values `[B(, T)]` and the network state."""
        observation, squash = self._encoder.squash(observation)
        value, network_state = super().call(
            observation, step_type, network_state, training=training
        )
        return squash.unflatten(value), network_state
