"""ValueRnnNetwork: maps sequences of observations to one value for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import lstm_encoding_network, utils, value_network
from tfrl.networks.construction import seeding
from tfrl.typing import types


class ValueRnnNetwork(value_network.EncoderValueNetwork):
    """Maps observations `[B(, T), ...]` to values, float `[B(, T)]`.

    The network is an `LSTMEncodingNetwork` and a dense layer of one unit.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        input_fc_layer_params: Sequence[int] | None = (75, 40),
        input_dropout_layer_params: Sequence[Any] | None = None,
        lstm_size: Sequence[int] | None = (40,),
        output_fc_layer_params: Sequence[int] | None = (75, 40),
        activation_fn: utils.Activation = keras.activations.relu,
        dtype: Any = tf.float32,
        name: str | None = "ValueRnnNetwork",
        *,
        kernel_initializer: Any = None,
        value_kernel_initializer: Any = None,
        seed: int | None = None,
    ):
        """Creates the network; see `LSTMEncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          input_fc_layer_params: As for `LSTMEncodingNetwork`.
          input_dropout_layer_params: As for `LSTMEncodingNetwork`.
          lstm_size: As for `LSTMEncodingNetwork`.
          output_fc_layer_params: As for `LSTMEncodingNetwork`.
          activation_fn: As for `LSTMEncodingNetwork`.
          dtype: The dtype of the encoder. The value is float32.
          name: The network's name.
          kernel_initializer: As for `LSTMEncodingNetwork`.
          value_kernel_initializer: The initialiser of the last kernel; by default
            uniform in [-0.03, 0.03].
          seed: Seeds the initialisers and dropout; None follows `tf.random.set_seed`.
        """
        seeds = seeding.SeedStream(seed)
        encoder = lstm_encoding_network.LSTMEncodingNetwork(
            input_tensor_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            conv_layer_params=conv_layer_params,
            input_fc_layer_params=input_fc_layer_params,
            input_dropout_layer_params=input_dropout_layer_params,
            lstm_size=lstm_size,
            output_fc_layer_params=output_fc_layer_params,
            activation_fn=activation_fn,
            dtype=dtype,
            kernel_initializer=kernel_initializer,
            seed=seeds(),
        )
        super().__init__(encoder, value_kernel_initializer, name, seeds=seeds)
