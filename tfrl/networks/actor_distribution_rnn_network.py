"""ActorDistributionRnnNetwork: maps sequences to distributions over actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import actor_distribution_network, lstm_encoding_network, utils
from tfrl.networks.actor_distribution_network import (
    _categorical_projection_net,
    _normal_projection_net,
)
from tfrl.networks.construction import seeding
from tfrl.typing import types


class ActorDistributionRnnNetwork(actor_distribution_network.EncoderProjectionNetwork):
    """Maps observations `[B(, T), ...]` to a nest of distributions over actions.

    The network is an `LSTMEncodingNetwork` with one projection network for each action,
    as in `ActorDistributionNetwork`. The distributions have batch shape `[B(, T)]`.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        output_tensor_spec: types.NestedTensorSpec,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        input_fc_layer_params: Sequence[int] | None = (200, 100),
        input_dropout_layer_params: Sequence[Any] | None = None,
        lstm_size: Sequence[int] | None = None,
        output_fc_layer_params: Sequence[int] | None = (200, 100),
        activation_fn: utils.Activation = keras.activations.relu,
        dtype: Any = tf.float32,
        discrete_projection_net: Callable[..., Any] = _categorical_projection_net,
        continuous_projection_net: Callable[..., Any] = _normal_projection_net,
        rnn_construction_fn: Callable[..., Any] | None = None,
        rnn_construction_kwargs: dict[str, Any] | None = None,
        name: str | None = "ActorDistributionRnnNetwork",
        *,
        kernel_initializer: Any = None,
        seed: int | None = None,
    ):
        """Creates the network; see `LSTMEncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          output_tensor_spec: The nest of bounded action specs.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          input_fc_layer_params: As for `LSTMEncodingNetwork`.
          input_dropout_layer_params: As for `LSTMEncodingNetwork`.
          lstm_size: As for `LSTMEncodingNetwork`.
          output_fc_layer_params: As for `LSTMEncodingNetwork`.
          activation_fn: As for `LSTMEncodingNetwork`.
          dtype: The dtype of the encoder.
          discrete_projection_net: As for `ActorDistributionNetwork`.
          continuous_projection_net: As for `ActorDistributionNetwork`.
          rnn_construction_fn: As for `LSTMEncodingNetwork`.
          rnn_construction_kwargs: As for `LSTMEncodingNetwork`.
          name: The network's name.
          kernel_initializer: As for `LSTMEncodingNetwork`.
          seed: Seeds all initialisers and dropout; None follows `tf.random.set_seed`.
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
            rnn_construction_fn=rnn_construction_fn,
            rnn_construction_kwargs=rnn_construction_kwargs,
            dtype=dtype,
            kernel_initializer=kernel_initializer,
            seed=seeds(),
        )
        super().__init__(
            encoder,
            output_tensor_spec,
            discrete_projection_net,
            continuous_projection_net,
            name,
            seeds=seeds,
        )
