"""CriticNetwork: maps observations and actions to one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import actor_network, encoding_network, network, utils
from tfrl.networks.construction import seeding
from tfrl.networks.layers import bodies
from tfrl.specs import tensor_spec
from tfrl.typing import types


class EncoderCriticNetwork(network.Network):
    """Base class of networks with an encoder of `(observation, action)` and a value."""

    def __init__(
        self,
        encoder: network.Network,
        last_layer: keras.layers.Layer,
        name: str | None,
    ):
        """Stores the encoder and the last layer.

        Args:
          encoder: A network from pairs of observations and actions to a hidden state
            `[B(, T), n]`.
          last_layer: A layer from the hidden state to `[B, 1]`.
          name: The network's name.
        """
        super().__init__(
            input_tensor_spec=encoder.input_tensor_spec,
            state_spec=encoder.state_spec,
            name=name,
        )
        self._encoder = encoder
        self._value_layer = last_layer

    def call(
        self,
        inputs: tuple[Any, Any],
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[tf.Tensor, Any]:
        """Returns the values `[B(, T)]` and the encoder's new state.

        Args:
          inputs: A pair of observations and actions, nests of tensors `[B, ...]` or
            `[B, T, ...]`.
          step_type: `[B]` or `[B, T]`, for an encoder with a state; without it the
            state is never reset.
          network_state: `[B, ...]`, or `()` for the initial state.
          training: Whether dropout is on.
        """
        encoding, network_state = self._encoder(
            inputs, step_type, network_state, training=training
        )
        squash = utils.BatchSquash(utils.outer_rank(inputs, self.input_tensor_spec))
        value = self._value_layer(squash.flatten(encoding))
        return squash.unflatten(tf.squeeze(value, -1)), network_state


class CriticNetwork(EncoderCriticNetwork):
    """Maps pairs of observations and actions `[B, ...]` to values, float `[B]`.

    Observations and actions have their own layers, then layers for both together,
    and a dense layer of one unit. This is the critic of DDPG (Lillicrap et al. 2016,
    arXiv:1509.02971, section 7), TD3 and SAC.
    """

    def __init__(
        self,
        input_tensor_spec: tuple[types.NestedTensorSpec, types.NestedTensorSpec],
        observation_conv_layer_params: Sequence[Any] | None = None,
        observation_fc_layer_params: Sequence[int] | None = None,
        observation_dropout_layer_params: Sequence[Any] | None = None,
        action_fc_layer_params: Sequence[int] | None = None,
        action_dropout_layer_params: Sequence[Any] | None = None,
        joint_fc_layer_params: Sequence[int] | None = None,
        joint_dropout_layer_params: Sequence[Any] | None = None,
        activation_fn: utils.Activation = keras.activations.relu,
        output_activation_fn: utils.Activation = None,
        kernel_initializer: Any = None,
        last_kernel_initializer: Any = None,
        last_layer: keras.layers.Layer | None = None,
        name: str | None = "CriticNetwork",
        *,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        body: bodies.Body | None = None,
        dtype: Any = tf.float32,
        seed: int | None = None,
    ):
        """Creates the network; see `EncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: A pair: the nest of observation specs and the nest of
            action specs.
          observation_conv_layer_params: The convolutions of the observations; see
            `conv_layer_params` of `EncodingNetwork`.
          observation_fc_layer_params: The units of the observations' dense layers.
          observation_dropout_layer_params: The dropout of the observations' dense
            layers; see `dropout_layer_params` of `EncodingNetwork`.
          action_fc_layer_params: The units of the actions' dense layers.
          action_dropout_layer_params: The dropout of the actions' dense layers.
          joint_fc_layer_params: The units of the dense layers for both together.
          joint_dropout_layer_params: The dropout of these layers.
          activation_fn: The activation of the convolutions and of all dense layers but
            the last.
          output_activation_fn: The activation of the last layer.
          kernel_initializer: The initialiser of all kernels but the last; by default
            uniform within `1 / sqrt(fan_in)`.
          last_kernel_initializer: The initialiser of the last kernel; by default
            uniform within 0.003.
          last_layer: A layer from `[B, n]` to `[B, 1]` that replaces the last layer; it
            is copied.
          name: The network's name.
          preprocessing_layers: The preprocessing of the observations; as for
            `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          body: Makes the layers for both together; as for `EncodingNetwork`.
          dtype: The dtype of the encoder. The value is float32 under mixed precision.
          seed: Seeds the initialisers and dropout; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If `input_tensor_spec` is not a pair.
        """
        seeds = seeding.SeedStream(seed)
        kernel_initializer = kernel_initializer or actor_network.fan_in_initializer()
        layers = encoders(
            input_tensor_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            observation_conv_layer_params=observation_conv_layer_params,
            observation_fc_layer_params=observation_fc_layer_params,
            observation_dropout_layer_params=observation_dropout_layer_params,
            action_fc_layer_params=action_fc_layer_params,
            action_dropout_layer_params=action_dropout_layer_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            dtype=dtype,
            seeds=seeds,
        )
        encoder = encoding_network.EncodingNetwork(
            input_tensor_spec,
            preprocessing_layers=layers,
            preprocessing_combiner=concatenation(dtype),
            fc_layer_params=joint_fc_layer_params,
            dropout_layer_params=joint_dropout_layer_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            body=body,
            dtype=dtype,
            seed=seeds(),
        )
        if last_layer is None:
            last_layer = value_layer(
                last_kernel_initializer, dtype, seeds, output_activation_fn
            )
        else:
            last_layer = seeding.copy_layer(last_layer)
            seeding.seed_layer(last_layer, seeds)
        super().__init__(encoder, last_layer, name)


def encoders(
    input_tensor_spec: Any,
    *,
    preprocessing_layers: types.NestedLayer | None,
    preprocessing_combiner: keras.layers.Layer | None,
    observation_conv_layer_params: Sequence[Any] | None,
    observation_fc_layer_params: Sequence[int] | None,
    action_fc_layer_params: Sequence[int] | None,
    activation_fn: utils.Activation,
    kernel_initializer: Any,
    dtype: Any,
    seeds: seeding.SeedStream,
    observation_dropout_layer_params: Sequence[Any] | None = None,
    action_dropout_layer_params: Sequence[Any] | None = None,
) -> tuple[network.Network, network.Network | tuple[()]]:
    """Makes the encoders of the observations and of the actions of a critic.

    Takes the arguments of `CriticNetwork`. Several actions are concatenated; an empty
    nest of actions has no encoder.

    Raises:
      ValueError: If `input_tensor_spec` is not a pair.
    """
    observation_spec, action_spec = check_pair(input_tensor_spec)
    common = {
        "activation_fn": activation_fn,
        "kernel_initializer": kernel_initializer,
        "dtype": dtype,
    }
    flat_actions = tf.nest.flatten(action_spec)
    of_observations = encoding_network.EncodingNetwork(
        observation_spec,
        preprocessing_layers=preprocessing_layers,
        preprocessing_combiner=preprocessing_combiner,
        conv_layer_params=observation_conv_layer_params,
        fc_layer_params=observation_fc_layer_params,
        dropout_layer_params=observation_dropout_layer_params,
        seed=seeds(),
        name="observation_encoder",
        **common,
    )
    if not flat_actions:
        return of_observations, ()
    return (
        of_observations,
        encoding_network.EncodingNetwork(
            action_spec,
            preprocessing_layers=tf.nest.map_structure(
                lambda _: keras.layers.Flatten(), action_spec
            ),
            preprocessing_combiner=(
                concatenation(dtype) if len(flat_actions) > 1 else None
            ),
            fc_layer_params=action_fc_layer_params,
            dropout_layer_params=action_dropout_layer_params,
            seed=seeds(),
            name="action_encoder",
            **common,
        ),
    )


def concatenation(dtype: Any) -> keras.layers.Layer:
    """Makes a layer that casts tensors `[B, ...]` to `dtype` and concatenates them."""
    return keras.layers.Concatenate(dtype=utils.dtype_name(dtype))


def value_layer(
    kernel_initializer: Any,
    dtype: Any,
    seeds: seeding.SeedStream,
    activation_fn: utils.Activation = None,
) -> keras.layers.Layer:
    """Makes the last layer of a critic; its initialiser is uniform within 0.003."""
    return keras.layers.Dense(
        1,
        activation=activation_fn,
        kernel_initializer=seeding.clone_initializer(
            kernel_initializer or actor_network.last_layer_initializer(), seeds()
        ),
        dtype=utils.head_dtype(dtype),
        name="value",
    )


def check_pair(input_tensor_spec: Any) -> tuple[Any, Any]:
    """Returns the specs of observations and of actions, or raises a ValueError."""
    specs = tensor_spec.from_spec(input_tensor_spec)
    if not (isinstance(specs, tuple | list) and len(specs) == 2):
        raise ValueError(
            f"input_tensor_spec: got {input_tensor_spec}, expected a pair of "
            "observation specs and action specs; write (env.observation_spec(), "
            "env.action_spec())."
        )
    return tuple(specs)
