"""ActorRnnNetwork: maps sequences of observations to continuous actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import actor_network, lstm_encoding_network, utils
from tfrl.networks.construction import seeding
from tfrl.typing import types


class ActorRnnNetwork(actor_network.EncoderActorNetwork):
    """Maps observations `[B(, T), ...]` to a nest of bounded continuous actions.

    The network is an `LSTMEncodingNetwork` and, for each action, a dense layer as in
    `ActorNetwork`.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        output_tensor_spec: types.NestedTensorSpec,
        conv_layer_params: Sequence[Any] | None = None,
        input_fc_layer_params: Sequence[int] | None = (200, 100),
        lstm_size: Sequence[int] | None = (40,),
        output_fc_layer_params: Sequence[int] | None = (200, 100),
        activation_fn: utils.Activation = keras.activations.relu,
        name: str | None = "ActorRnnNetwork",
        *,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        rnn_construction_fn: Callable[..., Any] | None = None,
        rnn_construction_kwargs: dict[str, Any] | None = None,
        dtype: Any = tf.float32,
        seed: int | None = None,
    ):
        """Creates the network; see `LSTMEncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          output_tensor_spec: The nest of bounded float action specs.
          conv_layer_params: As for `EncodingNetwork`.
          input_fc_layer_params: As for `LSTMEncodingNetwork`.
          lstm_size: As for `LSTMEncodingNetwork`; None with `rnn_construction_fn`.
          output_fc_layer_params: As for `LSTMEncodingNetwork`.
          activation_fn: As for `LSTMEncodingNetwork`; the last layers have a tanh.
          name: The network's name.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          rnn_construction_fn: As for `LSTMEncodingNetwork`.
          rnn_construction_kwargs: As for `LSTMEncodingNetwork`.
          dtype: The dtype of the encoder.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If an action is not a bounded float, or not exactly one of
            `lstm_size` and `rnn_construction_fn` is given.
        """
        seeds = seeding.SeedStream(seed)
        encoder = lstm_encoding_network.LSTMEncodingNetwork(
            input_tensor_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            conv_layer_params=conv_layer_params,
            input_fc_layer_params=input_fc_layer_params,
            lstm_size=lstm_size,
            output_fc_layer_params=output_fc_layer_params,
            activation_fn=activation_fn,
            rnn_construction_fn=rnn_construction_fn,
            rnn_construction_kwargs=rnn_construction_kwargs,
            kernel_initializer=actor_network.fan_in_initializer(),
            dtype=dtype,
            seed=seeds(),
        )
        super().__init__(encoder, output_tensor_spec, None, dtype, name, seeds=seeds)
