"""ActorDistributionRnnNetwork: sequences to distributions over actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import (
    actor_distribution_network,
    lstm_encoding_network,
    network,
    seeding,
    utils,
)
from tfrl.networks.actor_distribution_network import (
    _categorical_projection_net,
    _normal_projection_net,
)
from tfrl.specs import tensor_spec


class ActorDistributionRnnNetwork(network.DistributionNetwork):
    """Maps observations `[B(, T), ...]` to a nest of distributions over actions.

    An `LSTMEncodingNetwork` and one projection network for each action, as in
    `ActorDistributionNetwork`. The distributions have the batch shape `[B(, T)]`.
    """

    def __init__(
        self,
        input_tensor_spec: Any,
        output_tensor_spec: Any,
        preprocessing_layers: Any = None,
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
        seed: int | None = None,
    ):
        """Makes the network; see `LSTMEncodingNetwork` for what is not listed.

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
          dtype: Of the encoder.
          discrete_projection_net: As for `ActorDistributionNetwork`.
          continuous_projection_net: As for `ActorDistributionNetwork`.
          rnn_construction_fn: As for `LSTMEncodingNetwork`.
          rnn_construction_kwargs: As for `LSTMEncodingNetwork`.
          name: The network's name.
          seed: Seeds all initialisers and dropout; None follows `tf.random.set_seed`.
        """
        seeds = seeding.SeedStream(seed)
        output_tensor_spec = tensor_spec.from_spec(output_tensor_spec)
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
            seed=seeds(),
        )
        projections = actor_distribution_network.projection_networks(
            output_tensor_spec,
            discrete_projection_net,
            continuous_projection_net,
            seeds=seeds,
        )
        super().__init__(
            input_tensor_spec=input_tensor_spec,
            state_spec=encoder.state_spec,
            output_spec=tf.nest.map_structure(lambda p: p.output_spec, projections),
            name=name,
        )
        self._encoder = encoder
        self._keep("_output_tensor_spec", output_tensor_spec)
        self._projection_networks = tf.nest.flatten(projections)

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
        mask: tf.Tensor | None = None,
    ) -> tuple[Any, Any]:
        """Returns the nest of distributions and the state after the last step.

        Args:
          observation: The nest of observations, `[B, ...]` or `[B, T, ...]`.
          step_type: `[B]` or `[B, T]`; without it the state is never reset.
          network_state: `[B, ...]`, or `()` for the initial state.
          training: Whether dropout is on.
          mask: Which actions are valid, for discrete actions.
        """
        encoding, network_state = self._encoder(
            observation, step_type, network_state, training=training
        )
        outer_rank = utils.outer_rank(observation, self.input_tensor_spec)
        distributions = actor_distribution_network.project(
            self._projection_networks, encoding, outer_rank, training, mask
        )
        return (
            tf.nest.pack_sequence_as(self._output_tensor_spec, distributions),
            network_state,
        )
