"""DuelingQNetwork: action values as a state's value plus the actions' advantages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import q_network, utils
from tfrl.typing import types


class DuelingQNetwork(q_network.QNetwork):
    """A `QNetwork` with a dueling head, by default of one dense layer each.

    It is `QNetwork(dueling_layer_params=())` with the arguments of TF-Agents'
    `DuelingQNetwork`. See `value_head.ValueHead`.
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
        name: str | None = "DuelingQNetwork",
        *,
        seed: int | None = None,
        dueling_layer_params: Sequence[int] = (),
    ):
        """Creates the network; see `QNetwork` for the arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          action_spec: The spec of one discrete action.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          fc_layer_params: As for `EncodingNetwork`.
          dropout_layer_params: As for `EncodingNetwork`.
          activation_fn: As for `EncodingNetwork`.
          kernel_initializer: As for `QNetwork`.
          batch_squash: As for `EncodingNetwork`.
          dtype: As for `QNetwork`.
          q_layer_activation_fn: As for `QNetwork`.
          name: The network's name.
          seed: As for `QNetwork`.
          dueling_layer_params: See `value_head.ValueHead`.

        Raises:
          ValueError: If `action_spec` is not one discrete action.
        """
        super().__init__(
            input_tensor_spec,
            action_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            conv_layer_params=conv_layer_params,
            fc_layer_params=fc_layer_params,
            dropout_layer_params=dropout_layer_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            batch_squash=batch_squash,
            dtype=dtype,
            q_layer_activation_fn=q_layer_activation_fn,
            name=name,
            seed=seed,
            dueling_layer_params=dueling_layer_params,
        )
