"""QRnnNetwork: maps sequences of observations to a value per discrete action."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import lstm_encoding_network, q_network, utils
from tfrl.networks.construction import seeding
from tfrl.networks.heads import value_head
from tfrl.typing import types


class QRnnNetwork(lstm_encoding_network.LSTMEncodingNetwork):
    """Maps observations `[B(, T), ...]` to action values, float `[B(, T), n]`.

    The network is an `LSTMEncodingNetwork` and a dense layer of
    `n = maximum - minimum + 1` units, one for each action.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        action_spec: types.NestedTensorSpec,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        input_fc_layer_params: Sequence[int] | None = (75, 40),
        lstm_size: Sequence[int] | None = None,
        output_fc_layer_params: Sequence[int] | None = (75, 40),
        activation_fn: utils.Activation = keras.activations.relu,
        rnn_construction_fn: Callable[..., Any] | None = None,
        rnn_construction_kwargs: dict[str, Any] | None = None,
        dtype: Any = tf.float32,
        name: str | None = "QRnnNetwork",
        *,
        seed: int | None = None,
        numbers_per_action: int | None = None,
        dueling_layer_params: Sequence[int] | None = None,
        noisy_stddev: float | None = None,
    ):
        """Creates the network; see `LSTMEncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          action_spec: The spec of one discrete action.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          input_fc_layer_params: As for `LSTMEncodingNetwork`.
          lstm_size: As for `LSTMEncodingNetwork`.
          output_fc_layer_params: As for `LSTMEncodingNetwork`.
          activation_fn: As for `LSTMEncodingNetwork`; the last layer has none.
          rnn_construction_fn: As for `LSTMEncodingNetwork`.
          rnn_construction_kwargs: As for `LSTMEncodingNetwork`.
          dtype: The dtype of all layers.
          name: The network's name.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.
          numbers_per_action: See `value_head.ValueHead`.
          dueling_layer_params: See `value_head.ValueHead`.
          noisy_stddev: See `value_head.ValueHead`.

        Raises:
          ValueError: If `action_spec` is not one discrete action, or not exactly one of
            `lstm_size` and `rnn_construction_fn` is given.
        """
        q_network.validate_specs(action_spec, input_tensor_spec)
        seeds = seeding.SeedStream(seed)
        super().__init__(
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
            dtype=dtype,
            name=name,
            seed=seeds(),
        )
        self._head = value_head.ValueHead(
            q_network.num_actions_of(action_spec),
            numbers_per_action,
            dueling_layer_params=dueling_layer_params,
            noisy_stddev=noisy_stddev,
            hidden_activation=activation_fn,
            dtype=dtype,
            seeds=seeds,
        )
        self._output_encoder.append(self._head)
