"""CriticRnnNetwork: maps sequences of observations and actions to values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import actor_network, critic_network, lstm_encoding_network, utils
from tfrl.networks.construction import seeding
from tfrl.typing import types


class CriticRnnNetwork(critic_network.EncoderCriticNetwork):
    """Maps pairs of observations and actions `[B(, T), ...]` to values `[B(, T)]`.

    As in `CriticNetwork`, observations and actions have their own layers, then
    layers for both together; a recurrent layer, more dense layers and a layer of one
    unit follow.
    """

    def __init__(
        self,
        input_tensor_spec: tuple[types.NestedTensorSpec, types.NestedTensorSpec],
        observation_conv_layer_params: Sequence[Any] | None = None,
        observation_fc_layer_params: Sequence[int] | None = (200,),
        action_fc_layer_params: Sequence[int] | None = (200,),
        joint_fc_layer_params: Sequence[int] | None = (100,),
        lstm_size: Sequence[int] | None = None,
        output_fc_layer_params: Sequence[int] | None = (200, 100),
        activation_fn: utils.Activation = keras.activations.relu,
        kernel_initializer: Any = None,
        last_kernel_initializer: Any = None,
        rnn_construction_fn: Callable[..., Any] | None = None,
        rnn_construction_kwargs: dict[str, Any] | None = None,
        name: str | None = "CriticRnnNetwork",
        *,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        dtype: Any = tf.float32,
        seed: int | None = None,
    ):
        """Creates the network; see `CriticNetwork` for further arguments.

        Args:
          input_tensor_spec: A pair: the nest of observation specs and the nest of
            action specs.
          observation_conv_layer_params: As for `CriticNetwork`.
          observation_fc_layer_params: As for `CriticNetwork`.
          action_fc_layer_params: As for `CriticNetwork`.
          joint_fc_layer_params: The units of the dense layers for both together, before
            the recurrent layer.
          lstm_size: As for `LSTMEncodingNetwork`.
          output_fc_layer_params: As for `LSTMEncodingNetwork`.
          activation_fn: The activation of the convolutions and of all dense layers but
            the last.
          kernel_initializer: As for `CriticNetwork`.
          last_kernel_initializer: As for `CriticNetwork`.
          rnn_construction_fn: As for `LSTMEncodingNetwork`.
          rnn_construction_kwargs: As for `LSTMEncodingNetwork`.
          name: The network's name.
          preprocessing_layers: As for `CriticNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          dtype: As for `CriticNetwork`.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If `input_tensor_spec` is not a pair, or not exactly one of
            `lstm_size` and `rnn_construction_fn` is given.
        """
        seeds = seeding.SeedStream(seed)
        kernel_initializer = kernel_initializer or actor_network.fan_in_initializer()
        layers = critic_network.encoders(
            input_tensor_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            observation_conv_layer_params=observation_conv_layer_params,
            observation_fc_layer_params=observation_fc_layer_params,
            action_fc_layer_params=action_fc_layer_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            dtype=dtype,
            seeds=seeds,
        )
        encoder = lstm_encoding_network.LSTMEncodingNetwork(
            input_tensor_spec,
            preprocessing_layers=layers,
            preprocessing_combiner=critic_network.concatenation(dtype),
            input_fc_layer_params=joint_fc_layer_params,
            lstm_size=lstm_size,
            output_fc_layer_params=output_fc_layer_params,
            activation_fn=activation_fn,
            rnn_construction_fn=rnn_construction_fn,
            rnn_construction_kwargs=rnn_construction_kwargs,
            kernel_initializer=kernel_initializer,
            dtype=dtype,
            seed=seeds(),
        )
        last_layer = critic_network.value_layer(last_kernel_initializer, dtype, seeds)
        super().__init__(encoder, last_layer, name)
