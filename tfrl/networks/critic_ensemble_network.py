"""CriticEnsembleNetwork: several critics, computed together."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.keras_layers import stacked_dense
from tfrl.networks import (
    actor_network,
    critic_network,
    encoding_network,
    network,
    utils,
)
from tfrl.networks.construction import seeding
from tfrl.networks.layers import bodies
from tfrl.networks.layers import dropout as dropout_lib
from tfrl.typing import types
from tfrl.utils import number_checks


class CriticEnsembleNetwork(network.Network):
    """Maps pairs of observations and actions `[B, ...]` to values `[B, N]`.

    Each of the `N` critics is a stack of dense layers with its own weights; layer by
    layer, all critics are one batched matrix product. With `num_quantiles=M`, each
    critic predicts `M` quantiles of the return, `[B, N, M]`, as in Kuznetsov et al.,
    "Controlling overestimation bias with truncated mixture of continuous distributional
    quantile critics" (2020). Preprocessing layers are shared by all critics.
    """

    def __init__(
        self,
        input_tensor_spec: tuple[types.NestedTensorSpec, types.NestedTensorSpec],
        num_critics: int = 10,
        num_quantiles: int | None = None,
        fc_layer_params: Sequence[int] = (256, 256),
        dropout: float | None = None,
        layer_norm: bool = False,
        body: bodies.Body | None = None,
        activation_fn: utils.Activation = keras.activations.relu,
        kernel_initializer: Any = None,
        last_kernel_initializer: Any = None,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        dtype: Any = tf.float32,
        seed: int | None = None,
        name: str | None = "CriticEnsembleNetwork",
    ):
        """Creates the network.

        Args:
          input_tensor_spec: A pair: the nest of observation specs and the nest of
            action specs, which may be empty.
          num_critics: The number `N` of critics.
          num_quantiles: The number `M` of quantiles; None predicts values.
          fc_layer_params: The units of the dense layers of each critic.
          dropout: The rate of the dropout between each dense layer and its
            normalization or activation; None or 0 for no dropout.
          layer_norm: Whether the outputs of each dense layer are normalised before the
            activation, without learned scales. With dropout 0.01 this is DroQ (Hiraoka
            et al. 2022, arXiv:2110.02034).
          body: Makes the hidden layers in place of plain dense layers, without dropout
            and `layer_norm`; see `layers.bodies`.
          activation_fn: The activation of the dense layers.
          kernel_initializer: The initialiser of all kernels but the last; by default
            uniform within `1 / sqrt(fan_in)`.
          last_kernel_initializer: The initialiser of the last kernels; by default
            uniform within 0.003.
          preprocessing_layers: The preprocessing of the observations; as for
            `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          dtype: The dtype of the dense layers. The values are float32 under mixed
            precision.
          seed: Seeds the initialisers and dropout; None follows `tf.random.set_seed`.
          name: The network's name.

        Raises:
          ValueError: If `input_tensor_spec` is not a pair, or a number is not positive.
        """
        for argument, number in (("num_critics", num_critics), *_given(num_quantiles)):
            number_checks.check_integer(
                argument,
                number,
                1,
                remedy="2 critics are usual, 10 in REDQ, 5 of 25 quantiles in TQC",
            )
        seeds = seeding.SeedStream(seed)
        encoders = critic_network.encoders(
            input_tensor_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            observation_conv_layer_params=None,
            observation_fc_layer_params=None,
            action_fc_layer_params=None,
            activation_fn=activation_fn,
            kernel_initializer=None,
            dtype=dtype,
            seeds=seeds,
        )
        super().__init__(input_tensor_spec=input_tensor_spec, name=name)
        self._encoder = encoding_network.EncodingNetwork(
            input_tensor_spec,
            preprocessing_layers=encoders,
            preprocessing_combiner=(
                critic_network.concatenation(dtype) if encoders[1] else None
            ),
            dtype=dtype,
            seed=seeds(),
        )
        self._num_quantiles = num_quantiles

        def dense(units: int, initializer: Any, **kwargs: Any) -> keras.layers.Layer:
            return stacked_dense.StackedDense(
                num_critics,
                units,
                kernel_initializers=[
                    seeding.clone_initializer(initializer, seeds())
                    for _ in range(num_critics)
                ],
                **kwargs,
            )

        inner = kernel_initializer or actor_network.fan_in_initializer()
        name_of_dtype = utils.dtype_name(dtype)

        def make_hidden(units: int, initializer: Any = None) -> keras.layers.Layer:
            return dense(units, initializer or inner, dtype=name_of_dtype)

        if body is None:
            body = functools.partial(
                _plain_body, layer_norm=layer_norm, dropout=dropout, seeds=seeds
            )
        self._hidden_layers = body(
            fc_layer_params, make_hidden, activation_fn, name_of_dtype
        )
        self._value_layer = dense(
            num_quantiles or 1,
            last_kernel_initializer or actor_network.last_layer_initializer(),
            dtype=utils.head_dtype(dtype),
            name="values",
        )

    def call(
        self,
        inputs: tuple[Any, Any],
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
        one_each: bool = False,
    ) -> tuple[tf.Tensor, Any]:
        """Returns the values `[B(, T), N]` or quantiles `[B(, T), N, M]`.

        Args:
          inputs: A pair of observations and actions, nests of tensors `[B, ...]` or
            `[B, T, ...]`.
          step_type: Not used.
          network_state: Returned unchanged.
          training: Whether dropout is on.
          one_each: Whether the inputs are `[N, B, ...]`, those of each critic alone;
            the values are then `[N, B]`, or `[N, B, M]`. Their gradients are of one
            critic each.
        """
        encoding, network_state = self._encoder(
            inputs, step_type, network_state, training=training
        )
        squash = utils.BatchSquash(utils.outer_rank(inputs, self.input_tensor_spec))
        hidden = encoding if one_each else squash.flatten(encoding)
        for layer in self._hidden_layers:
            hidden = utils.call_layer(layer, hidden, training)
        values = self._value_layer(hidden)
        if not one_each:
            values = tf.transpose(values, [1, 0, 2])
        if self._num_quantiles is None:
            values = tf.squeeze(values, -1)
        return values if one_each else squash.unflatten(values), network_state


def _plain_body(
    sizes: Sequence[int],
    dense: bodies.Dense,
    activation_fn: Any,
    dtype: Any,
    *,
    layer_norm: bool,
    dropout: float | None,
    seeds: seeding.SeedStream,
) -> list[keras.layers.Layer]:
    """Makes dense layers, each with its dropout and normalization if there are any."""
    layers: list[keras.layers.Layer] = []
    for units in sizes:
        layers.append(dense(units))
        if dropout:
            layers.append(dropout_lib.Dropout(dropout, seed=seeds(), dtype=dtype))
        if layer_norm:
            layers.append(
                keras.layers.LayerNormalization(center=False, scale=False, dtype=dtype)
            )
        layers.append(keras.layers.Activation(activation_fn, dtype=dtype))
    return layers


def _given(num_quantiles: int | None) -> list[tuple[str, int]]:
    return [] if num_quantiles is None else [("num_quantiles", num_quantiles)]
