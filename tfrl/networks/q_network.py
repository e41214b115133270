"""QNetwork: maps observations to one value for each discrete action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfrl.networks import encoding_network, network, utils
from tfrl.networks.construction import seeding
from tfrl.networks.heads import value_head
from tfrl.typing import types


def validate_specs(action_spec: Any, observation_spec: Any = None) -> None:
    """Checks that there is one action, a bounded integer of shape `()` or `(1,)`.

    Raises:
      ValueError: If `action_spec` is anything else.
    """
    del observation_spec  # Every observation spec is valid.
    flat_action_spec = tf.nest.flatten(action_spec)
    if len(flat_action_spec) != 1:
        raise ValueError(
            f"action_spec: got {len(flat_action_spec)} actions, expected one: Network "
            "only supports action_specs with a single action; choose one, or enumerate "
            "their combinations, or train an agent whose actions may have several "
            "parts, such as PPO."
        )
    spec = flat_action_spec[0]
    if tuple(spec.shape) not in ((), (1,)):
        raise ValueError(
            f"action_spec: got shape {tuple(spec.shape)}, expected () or (1,): Network "
            "only supports action_specs with shape in [(), (1,)]; enumerate the "
            "combinations of actions, or train an agent whose actions may have "
            "several parts, such as PPO."
        )
    bounded = hasattr(spec, "minimum") and hasattr(spec, "maximum")
    if not bounded or not tf.as_dtype(spec.dtype).is_integer:
        raise ValueError(
            f"action_spec: got {spec}, expected a bounded integer; a Q-network needs "
            "discrete actions: train continuous ones with agents.ReinforceAgent, or "
            "make them discrete with environments.wrappers.ActionDiscretizeWrapper."
        )
    if np.any(np.asarray(spec.maximum) < np.asarray(spec.minimum)):
        raise ValueError(
            f"action_spec: got bounds [{spec.minimum}, {spec.maximum}], expected at "
            "least one action between them; exchange them."
        )


def num_actions_of(action_spec: Any) -> int:
    """Returns the number of actions of a valid spec."""
    spec = tf.nest.flatten(action_spec)[0]
    return int(np.max(np.asarray(spec.maximum, np.int64) - spec.minimum)) + 1


class QNetwork(network.Network):
    """Maps observations `[B, ...]` to action values, float `[B, num_actions]`.

    The network is an `EncodingNetwork` and a dense layer of `maximum - minimum + 1`
    units, or a head with the layers that the last three arguments define.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        action_spec: types.NestedTensorSpec,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        fc_layer_params: Sequence[int] | None = (75, 40),
        dropout_layer_params: Sequence[Any] | None = None,
        activation_fn: utils.Activation = keras.activations.relu,
        kernel_initializer: Any = None,
        batch_squash: bool = True,
        dtype: Any = tf.float32,
        q_layer_activation_fn: utils.Activation = None,
        name: str | None = "QNetwork",
        *,
        seed: int | None = None,
        layer_norm: bool = False,
        numbers_per_action: int | None = None,
        dueling_layer_params: Sequence[int] | None = None,
        noisy_stddev: float | None = None,
    ):
        """Creates the network; see `EncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          action_spec: The spec of one discrete action.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          fc_layer_params: As for `EncodingNetwork`.
          dropout_layer_params: As for `EncodingNetwork`.
          activation_fn: As for `EncodingNetwork`.
          kernel_initializer: As for `EncodingNetwork`; not used in the last layer.
          batch_squash: As for `EncodingNetwork`.
          dtype: The dtype of all layers; or a Keras dtype policy for mixed precision,
            such as "mixed_bfloat16", with which the last layer stays in float32.
          q_layer_activation_fn: The activation of the last layer.
          name: The network's name.
          seed: Seeds the initialisers and dropout; None follows `tf.random.set_seed`.
          layer_norm: As for `EncodingNetwork`.
          numbers_per_action: See `value_head.ValueHead`.
          dueling_layer_params: See `value_head.ValueHead`.
          noisy_stddev: See `value_head.ValueHead`.

        Raises:
          ValueError: If `action_spec` is not one discrete action.
        """
        validate_specs(action_spec, input_tensor_spec)
        super().__init__(input_tensor_spec=input_tensor_spec, name=name)
        seeds = seeding.SeedStream(seed)
        self._encoder = encoding_network.EncodingNetwork(
            input_tensor_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            conv_layer_params=conv_layer_params,
            fc_layer_params=fc_layer_params,
            dropout_layer_params=dropout_layer_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            batch_squash=batch_squash,
            dtype=dtype,
            layer_norm=layer_norm,
            seed=seeds(),
        )
        self._head = value_head.ValueHead(
            num_actions_of(action_spec),
            numbers_per_action,
            dueling_layer_params=dueling_layer_params,
            noisy_stddev=noisy_stddev,
            hidden_activation=activation_fn,
            activation=q_layer_activation_fn,
            dtype=dtype,
            seeds=seeds,
        )

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[tf.Tensor, Any]:
        """Returns the action values `[B(, T), num_actions(, m)]` and the state."""
        observation, squash = self._encoder.squash(observation)
        encoding, network_state = self._encoder(
            observation, step_type, network_state, training=training
        )
        return squash.unflatten(self._head(encoding, training=training)), network_state
