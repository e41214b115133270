"""LSTMEncodingNetwork: maps sequences of observations to a hidden state.

The network applies preprocessing layers -> combiner -> convolutions -> flatten -> dense
layers -> recurrent layer -> dense layers. Only the recurrent layer is required.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import encoding_network, network, utils
from tfrl.networks.construction import recurrence, seeding
from tfrl.typing import types

# The `implementation` of Keras' LSTM cell with one matrix product for all gates.
KERAS_LSTM_FUSED = 2


class LSTMEncodingNetwork(network.Network):
    """Encodes observations `[B, ...]` or `[B, T, ...]` as `[B(, T), n]`.

    The state `[B, ...]` has the structure of the cell's `state_size`: `[h, c]` for an
    LSTM, and a list of such pairs for several LSTM cells. Where `step_type` is FIRST,
    even inside a sequence, the state is reset before the step.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
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
        name: str | None = "LSTMEncodingNetwork",
        *,
        input_dropout_layer_params: Sequence[Any] | None = None,
        kernel_initializer: Any = None,
        seed: int | None = None,
    ):
        """Creates the network; see `EncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          input_fc_layer_params: The units of each dense layer before the recurrent
            layer.
          lstm_size: The units of each LSTM cell in the stack, from input to output.
          output_fc_layer_params: The units of each dense layer after the recurrent
            layer.
          activation_fn: The activation of convolutions and dense layers.
          rnn_construction_fn: A function that returns the recurrent layer, instead of
            `lstm_size`: a Keras RNN layer with `return_state` and `return_sequences`, a
            recurrent cell, a `DynamicUnroll` or an `RNNWrapper`.
          rnn_construction_kwargs: The arguments of `rnn_construction_fn`.
          dtype: The dtype of all layers that the network makes.
          name: The network's name.
          input_dropout_layer_params: The dropout of the dense layers before the
            recurrent layer; see `dropout_layer_params` of `EncodingNetwork`.
          kernel_initializer: The initialiser of the kernels of convolutions and dense
            layers; see `EncodingNetwork`.
          seed: Seeds the initialisers and dropout; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If not exactly one of `lstm_size` and `rnn_construction_fn` is
            given.
        """
        _check_one_of(lstm_size, rnn_construction_fn)
        seeds = seeding.SeedStream(seed)
        dtype = utils.dtype_name(dtype)
        input_encoder = encoding_network.EncodingNetwork(
            input_tensor_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            conv_layer_params=conv_layer_params,
            fc_layer_params=input_fc_layer_params,
            dropout_layer_params=input_dropout_layer_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            dtype=dtype,
            seed=seeds(),
        )
        if rnn_construction_fn is not None:
            rnn = rnn_construction_fn(**(rnn_construction_kwargs or {}))
        else:
            rnn = _stacked_lstm(lstm_size or (), dtype)
        rnn = recurrence.as_recurrent(rnn)
        seeding.seed_layer(rnn, seeds)
        super().__init__(
            input_tensor_spec=input_tensor_spec,
            state_spec=recurrence.named(recurrence.state_spec(rnn)),
            name=name,
        )
        self._input_encoder = input_encoder
        self._lstm_network = rnn
        self._output_encoder = utils.dense_layers(
            output_fc_layer_params,
            dropout_layer_params=None,
            weight_decay_params=None,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            seeds=seeds,
            dtype=dtype,
        )

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[tf.Tensor, Any]:
        """Returns the encoding `[B(, T), n]` and the state after the last step.

        Args:
          observation: The nest of observations, `[B, ...]` or `[B, T, ...]`.
          step_type: `[B]` or `[B, T]`; without it the state is never reset.
          network_state: `[B, ...]`, or `()` for the initial state.
          training: Whether dropout is on.

        Raises:
          ValueError: If the observations have neither one nor two outer dimensions.
        """
        outer_rank = utils.outer_rank(observation, self.input_tensor_spec)
        if outer_rank not in (1, 2):
            raise ValueError(
                f"{self.name}: got observations with {outer_rank} outer dimensions. "
                "Input observation must have a batch or batch x time outer shape, "
                "[B, ...] or [B, T, ...]; add or fold dimensions."
            )
        encoding, _ = self._input_encoder(observation, training=training)
        encoding, network_state = self._lstm_network(
            encoding,
            initial_state=network_state,
            reset_mask=recurrence.reset_mask(step_type),
            training=training,
        )
        squash = utils.BatchSquash(outer_rank)
        encoding = squash.flatten(encoding)
        for layer in self._output_encoder:
            encoding = layer(encoding, training=training)
        return squash.unflatten(encoding), network_state


LstmEncodingNetwork = LSTMEncodingNetwork


def _check_one_of(lstm_size: Any, rnn_construction_fn: Any) -> None:
    if not lstm_size and rnn_construction_fn is None:
        raise ValueError(
            "lstm_size, rnn_construction_fn: got neither, expected one of them. Need "
            "to provide either custom rnn_construction_fn or lstm_size; pass "
            "lstm_size=(40,), say."
        )
    if lstm_size and rnn_construction_fn is not None:
        raise ValueError(
            f"lstm_size, rnn_construction_fn: got {lstm_size} and "
            f"{rnn_construction_fn}, expected one of them. Cannot provide both custom "
            "rnn_construction_fn and lstm_size; leave one out."
        )


def _stacked_lstm(sizes: Sequence[int], dtype: Any) -> keras.layers.Layer:
    cells = [
        keras.layers.LSTMCell(size, dtype=dtype, implementation=KERAS_LSTM_FUSED)
        for size in sizes
    ]
    return (
        cells[0]
        if len(cells) == 1
        else keras.layers.StackedRNNCells(cells, dtype=dtype)
    )
