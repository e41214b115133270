"""The networks of MR.Q, as in the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tfrl import networks
from tfrl.agents import unit_actions
from tfrl.agents.mrq import image_shifts
from tfrl.networks import network as network_lib
from tfrl.networks.construction import seeding
from tfrl.networks.layers import bodies, encoders
from tfrl.typing import types

# The convolutions for images whose shorter side has at least 36 pixels.
_CONVOLUTIONS = ((32, 3, 2), (32, 3, 2), (32, 3, 2), (32, 3, 1))


class MrqNetworks(NamedTuple):
    """The networks of an `MrqAgent`, in the order of its arguments.

    Attributes:
      state_encoder: Maps observations to embeddings of states, `[B, n]`.
      state_action_encoder: Maps pairs of these embeddings and of actions `[B, A]`, see
        `unit_actions`, to embeddings of both, `[B, m]`.
      actor_network: Maps embeddings of states to actions before their activation, `[B,
        A]`.
      critic_network: Maps pairs of an embedding of both and of `()`, no action, to the
        values of each critic, `[B, N]`.
    """

    state_encoder: networks.Network
    state_action_encoder: networks.Network
    actor_network: networks.Network
    critic_network: networks.Network


def make_networks(
    observation_spec: types.NestedTensorSpec,
    action_spec: types.TensorSpec,
    *,
    hidden_size: int = 512,
    conv_layer_params: Any = None,
    encoder: Any = None,
    activation_fn: Any = None,
    dtype: Any = "float32",
    seed: int | None = None,
) -> MrqNetworks:
    """Makes the networks of the paper.

    Each critic has four dense layers; the others have three, or one after convolutions.
    Hidden layers have `hidden_size` units, and a normalization without weights before
    the activation: ELU, and ReLU in the actor. Embeddings have `hidden_size` numbers,
    but those of actions half as many.

    Args:
      observation_spec: The nest of specs of the observations.
      action_spec: The spec of the action; see `MrqAgent`.
      hidden_size: The number of units.
      conv_layer_params: See `networks.observation_encoder`; by default four
        convolutions of 3x3 for images of at least 36 pixels, and its own for others.
      encoder: See `networks.observation_encoder`.
      activation_fn: The activation of all hidden layers, in place of ELU and ReLU.
      dtype: The dtype of the layers, or a Keras dtype policy.
      seed: Seeds the initialisers; None follows `tf.random.set_seed`.
    """
    seeds = seeding.SeedStream(seed)
    size, activation = hidden_size, activation_fn or "elu"
    state = tf.TensorSpec([size], tf.float32)
    action = tf.TensorSpec([unit_actions.of(action_spec).size], tf.float32)
    hidden: Mapping[str, Any] = {
        "body": bodies.layer_normed_before,
        "activation_fn": activation,
        "kernel_initializer": _initializer(),
        "dtype": dtype,
    }
    if conv_layer_params is None and image_shifts.are_any(observation_spec):
        conv_layer_params = _CONVOLUTIONS
    encoding = networks.observation_encoder(
        observation_spec,
        conv_layer_params=conv_layer_params,
        encoder=encoder,
        activation_fn=activation,
        kernel_initializer=_initializer(),
        dtype=dtype,
    )
    has_images = encoders.has_images(observation_spec, conv_layer_params)
    state_encoder = networks.EncodingNetwork(
        observation_spec,
        fc_layer_params=(size,) if has_images else (size,) * 3,
        name="StateEncoder",
        seed=seeds(),
        **{**hidden, **encoding},
    )
    joined = networks.EncodingNetwork(
        (state, action),
        preprocessing_layers=(
            keras.layers.Identity(),
            keras.layers.Dense(
                size // 2,
                activation=activation,
                kernel_initializer=_initializer(),
                dtype=dtype,
            ),
        ),
        preprocessing_combiner=keras.layers.Concatenate(),
        fc_layer_params=(size,) * 2,
        seed=seeds(),
        **hidden,
    )
    actor = networks.EncodingNetwork(
        state,
        fc_layer_params=(size,) * 2,
        seed=seeds(),
        **{**hidden, "activation_fn": activation_fn or "relu"},
    )
    return MrqNetworks(
        state_encoder,
        networks.Sequential(
            [joined, last_layer(size)], name="StateActionEncoder", seed=seeds()
        ),
        networks.Sequential(
            [actor, last_layer(action.shape[0])], name="Actor", seed=seeds()
        ),
        networks.CriticEnsembleNetwork(
            (state, ()),
            num_critics=2,
            fc_layer_params=(size,) * 3,
            last_kernel_initializer=_initializer(),
            seed=seeds(),
            **hidden,
        ),
    )


class ActingNetwork(network_lib.Network):
    """Maps observations to actions, or to a distribution of a choice."""

    def __init__(
        self,
        state_encoder: networks.Network,
        actor_network: networks.Network,
        actions: unit_actions.UnitActions,
    ) -> None:
        """Stores the networks, which it shares.

        Args:
          state_encoder: See `MrqNetworks`.
          actor_network: See `MrqNetworks`.
          actions: The actions.
        """
        super().__init__(
            input_tensor_spec=state_encoder.input_tensor_spec, name="ActingNetwork"
        )
        self._state_encoder = state_encoder
        self._actor_network = actor_network
        self._set_untracked("_actions", actions)

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[Any, Any]:
        """Returns the action, or its distribution, and the unchanged state."""
        state, _ = self._state_encoder(observation, step_type, training=training)
        outputs, _ = self._actor_network(state, step_type, training=training)
        return self._actions.acting(outputs), network_state


def last_layer(units: int) -> keras.layers.Layer:
    """Makes a linear layer with the initialiser of all kernels."""
    return keras.layers.Dense(units, kernel_initializer=_initializer())


def _initializer() -> keras.initializers.Initializer:
    """Makes the initialiser of all kernels: Glorot's, times the gain of ReLU."""
    return keras.initializers.VarianceScaling(2.0, "fan_avg", "uniform")
