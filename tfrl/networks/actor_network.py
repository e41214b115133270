"""ActorNetwork: maps observations to continuous actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfrl.networks import encoding_network, network, utils
from tfrl.networks.construction import seeding
from tfrl.networks.layers import bodies
from tfrl.specs import matching, tensor_spec
from tfrl.typing import types
from tfrl.utils import actions, nest_utils


def fan_in_initializer() -> keras.initializers.Initializer:
    """Makes the initialiser of hidden layers: uniform within `1 / sqrt(fan_in)`.

    Lillicrap et al. 2016, arXiv:1509.02971, section 7.
    """
    return keras.initializers.VarianceScaling(
        scale=1.0 / 3.0, mode="fan_in", distribution="uniform"
    )


def last_layer_initializer() -> keras.initializers.Initializer:
    """Makes the initialiser of last layers: uniform within 0.003.

    Lillicrap et al. 2016, arXiv:1509.02971, section 7. The first actions and values are
    then close to the middle of their range.
    """
    return keras.initializers.RandomUniform(-0.003, 0.003)


class EncoderActorNetwork(network.Network):
    """Base class of networks with an encoder and a tanh layer for each action."""

    def __init__(
        self,
        encoder: network.Network,
        output_tensor_spec: types.NestedTensorSpec,
        last_kernel_initializer: Any,
        dtype: Any,
        name: str | None,
        *,
        seeds: seeding.SeedStream,
    ):
        """Makes the last layers.

        Args:
          encoder: A network from the observations to a hidden state `[B(, T), n]`.
          output_tensor_spec: As for `ActorNetwork`.
          last_kernel_initializer: As for `ActorNetwork`.
          dtype: As for `ActorNetwork`.
          name: The network's name.
          seeds: The stream of the seeds of the last layers.
        """
        output_tensor_spec = tensor_spec.from_spec(output_tensor_spec)
        _check_actions(output_tensor_spec)
        super().__init__(
            input_tensor_spec=encoder.input_tensor_spec,
            state_spec=encoder.state_spec,
            name=name,
        )
        self._encoder = encoder
        self._set_untracked("_output_tensor_spec", output_tensor_spec)
        self._action_layers = [
            keras.layers.Dense(
                int(np.prod(spec.shape)),
                activation="tanh",
                kernel_initializer=seeding.clone_initializer(
                    last_kernel_initializer or last_layer_initializer(), seeds()
                ),
                dtype=utils.head_dtype(dtype),
                name=f"action_{i}",
            )
            for i, spec in enumerate(tf.nest.flatten(output_tensor_spec))
        ]

    @property
    def output_tensor_spec(self) -> Any:
        """The nest of action specs."""
        return self._output_tensor_spec

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[Any, Any]:
        """Returns the nest of actions and the encoder's new state.

        Args:
          observation: The nest of observations, `[B, ...]` or `[B, T, ...]`.
          step_type: `[B]` or `[B, T]`, for an encoder with a state; without it the
            state is never reset.
          network_state: `[B, ...]`, or `()` for the initial state.
          training: Whether dropout is on.
        """
        encoding, network_state = self._encoder(
            observation, step_type, network_state, training=training
        )
        squash = utils.BatchSquash(
            utils.outer_rank(observation, self.input_tensor_spec)
        )
        hidden = squash.flatten(encoding)
        scaled = [
            squash.unflatten(actions.scale_to_spec(layer(hidden), spec))
            for layer, spec in zip(
                self._action_layers,
                tf.nest.flatten(self._output_tensor_spec),
                strict=True,
            )
        ]
        return tf.nest.pack_sequence_as(self._output_tensor_spec, scaled), network_state


class ActorNetwork(EncoderActorNetwork):
    """Maps observations `[B, ...]` to a nest of bounded continuous actions.

    The network is an `EncodingNetwork` and, for each action, a dense layer whose tanh
    is scaled to the bounds. This is the actor of DDPG (Lillicrap et al. 2016,
    arXiv:1509.02971, section 7) and TD3.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        output_tensor_spec: types.NestedTensorSpec,
        fc_layer_params: Sequence[int] | None = None,
        dropout_layer_params: Sequence[Any] | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        activation_fn: utils.Activation = keras.activations.relu,
        kernel_initializer: Any = None,
        last_kernel_initializer: Any = None,
        name: str | None = "ActorNetwork",
        *,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        body: bodies.Body | None = None,
        dtype: Any = tf.float32,
        seed: int | None = None,
    ):
        """Creates the network; see `EncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          output_tensor_spec: The nest of bounded float action specs.
          fc_layer_params: As for `EncodingNetwork`.
          dropout_layer_params: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          activation_fn: As for `EncodingNetwork`; the last layers have a tanh.
          kernel_initializer: The initialiser of all kernels but the last; by default
            uniform within `1 / sqrt(fan_in)`.
          last_kernel_initializer: The initialiser of the last kernels; by default
            uniform within 0.003.
          name: The network's name.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          body: As for `EncodingNetwork`.
          dtype: The dtype of the encoder.
          seed: Seeds the initialisers and dropout; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If an action is not a bounded float.
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
            kernel_initializer=kernel_initializer or fan_in_initializer(),
            body=body,
            dtype=dtype,
            seed=seeds(),
        )
        super().__init__(
            encoder,
            output_tensor_spec,
            last_kernel_initializer,
            dtype,
            name,
            seeds=seeds,
        )


def _check_actions(action_spec: Any) -> None:
    matching.check_not_empty(action_spec, "output_tensor_spec")
    for path, spec in nest_utils.flatten_with_joined_paths(action_spec):
        if not (tensor_spec.is_continuous(spec) and actions.has_finite_range(spec)):
            raise ValueError(
                f"output_tensor_spec {path}".rstrip() + f": got {spec}, expected a "
                "bounded spec of floats, onto whose finite range the network scales a "
                "tanh; use an ActorDistributionNetwork for other actions."
            )
