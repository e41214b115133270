"""Critics with a recurrent layer: they map sequences of observations and actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import (
    actor_network,
    critic_network,
    lstm_encoding_network,
    network,
    utils,
)
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


class MemoryCriticNetwork(network.Network):
    """Maps pairs of observations and actions `[B(, T), ...]` to values `[B(, T)]`.

    The value of step t is `Q(h_t, a_t)`, where an LSTM computes `h_t` from the
    observations up to t. So the loss of an actor changes the value of each action
    alone, as in Ni et al., "Recurrent model-free RL can be a strong baseline for many
    POMDPs" (2022, arXiv:2110.05038). The LSTM of a `CriticRnnNetwork` takes the
    actions, too: there, an actor also learns from what its earlier actions make the
    critic believe of later steps, whose observations did not follow from them.
    """

    def __init__(
        self,
        input_tensor_spec: tuple[types.NestedTensorSpec, types.NestedTensorSpec],
        observation_conv_layer_params: Sequence[Any] | None = None,
        observation_fc_layer_params: Sequence[int] | None = (200,),
        lstm_size: Sequence[int] = (40,),
        joint_fc_layer_params: Sequence[int] | None = (100,),
        activation_fn: utils.Activation = keras.activations.relu,
        kernel_initializer: Any = None,
        last_kernel_initializer: Any = None,
        name: str | None = "MemoryCriticNetwork",
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
          observation_fc_layer_params: The units of the dense layers before the LSTM.
          lstm_size: As for `LSTMEncodingNetwork`.
          joint_fc_layer_params: The units of the dense layers for `h_t` and the action.
          activation_fn: The activation of the convolutions and of all dense layers but
            the last.
          kernel_initializer: As for `CriticNetwork`.
          last_kernel_initializer: As for `CriticNetwork`.
          name: The network's name.
          preprocessing_layers: As for `CriticNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          dtype: As for `CriticNetwork`.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If `input_tensor_spec` is not a pair.
        """
        observation_spec, action_spec = critic_network.check_pair(input_tensor_spec)
        seeds = seeding.SeedStream(seed)
        common = {
            "activation_fn": activation_fn,
            "kernel_initializer": kernel_initializer
            or actor_network.fan_in_initializer(),
            "dtype": dtype,
        }
        memory = lstm_encoding_network.LSTMEncodingNetwork(
            observation_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            conv_layer_params=observation_conv_layer_params,
            input_fc_layer_params=observation_fc_layer_params,
            lstm_size=lstm_size,
            output_fc_layer_params=None,
            seed=seeds(),
            **common,
        )
        policy = keras.dtype_policies.get(utils.dtype_name(dtype))
        remembered = tf.TensorSpec([lstm_size[-1]], policy.compute_dtype)
        critic = critic_network.CriticNetwork(
            (remembered, action_spec),
            joint_fc_layer_params=joint_fc_layer_params,
            last_kernel_initializer=last_kernel_initializer,
            seed=seeds(),
            **common,
        )
        super().__init__(input_tensor_spec, memory.state_spec, name)
        self._memory = memory
        self._critic = critic

    def call(
        self,
        inputs: tuple[Any, Any],
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[tf.Tensor, Any]:
        """Returns the values `[B(, T)]` and the LSTM's new state.

        Args:
          inputs: A pair of observations and actions, nests of tensors `[B, ...]` or
            `[B, T, ...]`.
          step_type: `[B]` or `[B, T]`; without it the state is never reset.
          network_state: `[B, ...]`, or `()` for the initial state.
          training: Whether dropout is on.
        """
        observation, action = inputs
        remembered, network_state = self._memory(
            observation, step_type, network_state, training=training
        )
        value, _ = self._critic((remembered, action), training=training)
        return value, network_state
