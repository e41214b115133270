"""ActorDistributionNetwork: maps observations to distributions over actions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfrl.networks import (
    categorical_projection_network,
    encoding_network,
    network,
    normal_projection_network,
    utils,
)
from tfrl.networks.construction import seeding
from tfrl.networks.layers import bodies
from tfrl.specs import tensor_spec
from tfrl.typing import types


def _categorical_projection_net(
    action_spec: Any,
    logits_init_output_factor: float = 0.1,
    *,
    seed: int | None = None,
) -> network.DistributionNetwork:
    return categorical_projection_network.CategoricalProjectionNetwork(
        action_spec, logits_init_output_factor=logits_init_output_factor, seed=seed
    )


def _normal_projection_net(
    action_spec: Any,
    init_action_stddev: float = 0.35,
    init_means_output_factor: float = 0.1,
    seed_stream_class: Any = None,
    seed: int | None = None,
) -> network.DistributionNetwork:
    return normal_projection_network.NormalProjectionNetwork(
        action_spec,
        init_means_output_factor=init_means_output_factor,
        # Softplus maps this value to `init_action_stddev`.
        std_bias_initializer_value=float(np.log(np.expm1(init_action_stddev))),
        scale_distribution=False,
        seed=seed,
        seed_stream_class=seed_stream_class,
    )


def projection_networks(
    output_tensor_spec: Any,
    discrete_projection_net: Callable[..., Any] = _categorical_projection_net,
    continuous_projection_net: Callable[..., Any] = _normal_projection_net,
    *,
    seeds: seeding.SeedStream,
    seed_stream_class: Any = None,
) -> Any:
    """Makes the nest of projection networks, one for each action of a nest of specs."""

    def make(spec: Any) -> Any:
        if tensor_spec.is_discrete(spec):
            make_projection = discrete_projection_net
        else:
            make_projection = continuous_projection_net
        offered = {"seed": seeds(), "seed_stream_class": seed_stream_class}
        accepted = inspect.signature(make_projection).parameters
        return make_projection(
            spec, **{k: v for k, v in offered.items() if k in accepted}
        )

    return tf.nest.map_structure(make, output_tensor_spec)


class EncoderProjectionNetwork(network.DistributionNetwork):
    """Base class of networks with an encoder and one projection network per action."""

    def __init__(
        self,
        encoder: network.Network,
        output_tensor_spec: types.NestedTensorSpec,
        discrete_projection_net: Callable[..., Any],
        continuous_projection_net: Callable[..., Any],
        name: str | None,
        *,
        seeds: seeding.SeedStream,
        seed_stream_class: Any = None,
    ):
        """Makes the projection networks.

        Args:
          encoder: A network from the observations to a hidden state `[B(, T), n]`.
          output_tensor_spec: The nest of bounded action specs.
          discrete_projection_net: As for `ActorDistributionNetwork`.
          continuous_projection_net: As for `ActorDistributionNetwork`.
          name: The network's name.
          seeds: The stream of the seeds of the projection networks.
          seed_stream_class: As for `ActorDistributionNetwork`.
        """
        output_tensor_spec = tensor_spec.from_spec(output_tensor_spec)
        projections = projection_networks(
            output_tensor_spec,
            discrete_projection_net,
            continuous_projection_net,
            seeds=seeds,
            seed_stream_class=seed_stream_class,
        )
        super().__init__(
            input_tensor_spec=encoder.input_tensor_spec,
            state_spec=encoder.state_spec,
            output_spec=tf.nest.map_structure(lambda p: p.output_spec, projections),
            name=name,
        )
        self._encoder = encoder
        self._set_untracked("_output_tensor_spec", output_tensor_spec)
        self._projection_networks = tf.nest.flatten(projections)
        self._is_wide = any(
            spec.dtype == tf.float32 for spec in tf.nest.flatten(output_tensor_spec)
        )

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
        """Returns the nest of distributions and the encoder's new state.

        Args:
          observation: The nest of observations, `[B, ...]` or `[B, T, ...]`.
          step_type: `[B]` or `[B, T]`, for an encoder with a state; without it the
            state is never reset.
          network_state: `[B, ...]`, or `()` for the initial state.
          training: Whether dropout is on.
          mask: A mask of the valid actions, if the actions are discrete.
        """
        encoding, network_state = self._encoder(
            observation, step_type, network_state, training=training
        )
        outer_rank = utils.outer_rank(observation, self.input_tensor_spec)
        if not tf.is_tensor(mask):
            # For nested observations, Keras passes a nest of Nones as the mask.
            mask = None
        if encoding.dtype.size < 4 and self._is_wide:
            # Under mixed precision, the layers after the encoder are float32.
            encoding = tf.cast(encoding, tf.float32)
        distributions = [
            projection(encoding, outer_rank, training=training, mask=mask)[0]
            for projection in self._projection_networks
        ]
        return (
            tf.nest.pack_sequence_as(self._output_tensor_spec, distributions),
            network_state,
        )


class ActorDistributionNetwork(EncoderProjectionNetwork):
    """Maps observations `[B, ...]` to a nest of distributions over actions.

    The network is an `EncodingNetwork` with one projection network for each action. A
    discrete action has a Categorical, a continuous action a normal distribution.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        output_tensor_spec: types.NestedTensorSpec,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        fc_layer_params: Sequence[int] | None = (200, 100),
        dropout_layer_params: Sequence[Any] | None = None,
        activation_fn: utils.Activation = keras.activations.relu,
        kernel_initializer: Any = None,
        seed_stream_class: Any = None,
        seed: int | None = None,
        batch_squash: bool = True,
        dtype: Any = tf.float32,
        discrete_projection_net: Callable[..., Any] = _categorical_projection_net,
        continuous_projection_net: Callable[..., Any] = _normal_projection_net,
        name: str | None = "ActorDistributionNetwork",
        *,
        body: bodies.Body | None = None,
    ):
        """Creates the network; see `EncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          output_tensor_spec: The nest of bounded action specs.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          fc_layer_params: As for `EncodingNetwork`.
          dropout_layer_params: As for `EncodingNetwork`.
          activation_fn: As for `EncodingNetwork`.
          kernel_initializer: The encoder's kernel initialiser; by default Glorot
            uniform.
          seed_stream_class: Passed to continuous projections that have this argument.
          seed: Seeds all initialisers and dropout; None follows `tf.random.set_seed`.
          batch_squash: As for `EncodingNetwork`.
          dtype: The dtype of the encoder.
          discrete_projection_net: A function from the spec of a discrete action, and a
            `seed` if it has that argument, to the projection network of the action.
          continuous_projection_net: A function like `discrete_projection_net`, for
            continuous actions.
          name: The network's name.
          body: As for `EncodingNetwork`.
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
            kernel_initializer=kernel_initializer or "glorot_uniform",
            batch_squash=batch_squash,
            dtype=dtype,
            body=body,
            seed=seeds(),
        )
        super().__init__(
            encoder,
            output_tensor_spec,
            discrete_projection_net,
            continuous_projection_net,
            name,
            seeds=seeds,
            seed_stream_class=seed_stream_class,
        )
