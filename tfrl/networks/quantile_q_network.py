"""Networks that map observations to quantiles of the return of each action."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
from typing_extensions import override

from tfrl.networks import (
    encoding_network,
    network,
    q_network,
    utils,
)
from tfrl.networks.construction import seeding
from tfrl.networks.heads import value_head
from tfrl.networks.layers import initializers
from tfrl.typing import types
from tfrl.utils import number_checks


def cosine_features(fractions: tf.Tensor, num_cosines: int) -> tf.Tensor:
    """Returns `cos(pi i tau)` for `i = 0, ..., num_cosines - 1`, `[..., num_cosines]`.

    See Dabney et al., "Implicit quantile networks for distributional reinforcement
    learning", 2018, equation 4.

    Args:
      fractions: The fractions tau, floats `[...]`.
      num_cosines: The number of features of each.
    """
    multiples = math.pi * tf.range(num_cosines, dtype=fractions.dtype)
    return tf.cos(fractions[..., tf.newaxis] * multiples)


class ProductWithFractions(keras.layers.Layer):
    """Multiplies embeddings by embeddings of fractions, which have the same size."""

    def __init__(self, num_cosines: int, **kwargs: Any):
        """Creates the layer.

        Args:
          num_cosines: The number of cosine features of a fraction.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self._num_cosines = num_cosines
        self._initializer = initializers.truncated()

    @override
    def build(self, inputs_shape: Any, fractions_shape: Any) -> None:
        """Creates the weights."""
        size = inputs_shape[-1]
        self._kernel = self.add_weight(
            shape=(self._num_cosines, size), initializer=self._initializer
        )
        self._bias = self.add_weight(shape=(size,), initializer="zeros")

    def call(self, inputs: tf.Tensor, fractions: tf.Tensor) -> tf.Tensor:
        """Returns the products, `[..., N, n]`."""
        features = cosine_features(fractions, self._num_cosines)
        kernel, bias = map(tf.convert_to_tensor, (self._kernel, self._bias))
        embedded = tf.nn.relu(tf.tensordot(features, kernel, axes=1) + bias)
        return inputs[..., tf.newaxis, :] * embedded


class QuantileQNetwork(q_network.QNetwork):
    """Maps observations `[B, ...]` to quantiles, float `[B, num_actions, N]`.

    The N quantiles belong to the fractions `(i + 1/2) / N`. Dabney et al.,
    "Distributional reinforcement learning with quantile regression" (2018,
    arXiv:1710.10044).
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        action_spec: types.NestedTensorSpec,
        num_quantiles: int = 200,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        fc_layer_params: Sequence[int] | None = (75, 40),
        activation_fn: utils.Activation = keras.activations.relu,
        dtype: Any = tf.float32,
        name: str | None = "QuantileQNetwork",
        *,
        seed: int | None = None,
        dueling_layer_params: Sequence[int] | None = None,
        noisy_stddev: float | None = None,
    ):
        """Creates the network; see `QNetwork` for the arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          action_spec: The spec of one discrete action.
          num_quantiles: The number N of quantiles of each action.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          fc_layer_params: As for `EncodingNetwork`.
          activation_fn: As for `EncodingNetwork`.
          dtype: As for `QNetwork`.
          name: The network's name.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.
          dueling_layer_params: See `value_head.ValueHead`.
          noisy_stddev: See `value_head.ValueHead`.

        Raises:
          ValueError: If `action_spec` is not one discrete action, or `num_quantiles` is
            not positive.
        """
        number_checks.check_integer(
            "num_quantiles", num_quantiles, 1, remedy="the paper takes 200"
        )
        super().__init__(
            input_tensor_spec,
            action_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            conv_layer_params=conv_layer_params,
            fc_layer_params=fc_layer_params,
            activation_fn=activation_fn,
            dtype=dtype,
            name=name,
            seed=seed,
            numbers_per_action=num_quantiles,
            dueling_layer_params=dueling_layer_params,
            noisy_stddev=noisy_stddev,
        )


class ImplicitQuantileNetwork(network.Network):
    """Maps observations and fractions to quantiles, float `[B, num_actions, N]`.

    An encoding of the observation is multiplied by an embedding of each fraction tau,
    and a head maps the product to the quantiles at tau. Dabney et al., "Implicit
    quantile networks for distributional reinforcement learning" (2018,
    arXiv:1806.06923), section 3.1. Without fractions, `call` takes `num_quantiles`
    evenly spaced fractions, `(i + 1/2) / N`, while the paper draws them. So a policy's
    choice is not random, and the mean of the quantiles has no noise.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        action_spec: types.NestedTensorSpec,
        num_quantiles: int = 32,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        fc_layer_params: Sequence[int] | None = (75, 40),
        quantile_layer_params: Sequence[int] = (),
        activation_fn: utils.Activation = keras.activations.relu,
        dtype: Any = tf.float32,
        name: str | None = "ImplicitQuantileNetwork",
        *,
        num_cosines: int = 64,
        seed: int | None = None,
        dueling_layer_params: Sequence[int] | None = None,
        noisy_stddev: float | None = None,
    ):
        """Creates the network; see `EncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          action_spec: The spec of one discrete action.
          num_quantiles: The number N of quantiles of each action, if `call` is given no
            fractions.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          fc_layer_params: As for `EncodingNetwork`, before the product.
          quantile_layer_params: The units of the dense layers after the product; the
            paper has one layer of 512 units.
          activation_fn: As for `EncodingNetwork`.
          dtype: As for `QNetwork`.
          name: The network's name.
          num_cosines: The number of cosine features of a fraction.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.
          dueling_layer_params: See `value_head.ValueHead`.
          noisy_stddev: See `value_head.ValueHead`.

        Raises:
          ValueError: If `action_spec` is not one discrete action, or a number is not
            positive.
        """
        q_network.validate_specs(action_spec, input_tensor_spec)
        for label, number in (
            ("num_quantiles", num_quantiles),
            ("num_cosines", num_cosines),
        ):
            number_checks.check_integer(label, number, 1, remedy="32 and 64 are usual")
        super().__init__(input_tensor_spec=input_tensor_spec, name=name)
        seeds = seeding.SeedStream(seed)
        self._num_quantiles = num_quantiles
        self._encoder = encoding_network.EncodingNetwork(
            input_tensor_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            conv_layer_params=conv_layer_params,
            fc_layer_params=fc_layer_params,
            activation_fn=activation_fn,
            dtype=dtype,
            seed=seeds(),
        )
        self._product = ProductWithFractions(num_cosines, dtype=utils.head_dtype(dtype))
        seeding.seed_layer(self._product, seeds)
        self._dense_layers = utils.dense_layers(
            quantile_layer_params,
            dropout_layer_params=None,
            weight_decay_params=None,
            activation_fn=activation_fn,
            kernel_initializer=None,
            seeds=seeds,
            dtype=utils.dtype_name(dtype),
        )
        self._head = value_head.ValueHead(
            q_network.num_actions_of(action_spec),
            dueling_layer_params=dueling_layer_params,
            noisy_stddev=noisy_stddev,
            hidden_activation=activation_fn,
            dtype=dtype,
            seeds=seeds,
        )

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
        fractions: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, Any]:
        """Returns the quantiles `[B(, T), num_actions, N]` and the network state.

        Args:
          observation: The nest of observations `[B(, T), ...]`.
          step_type: Not used.
          network_state: Returned unchanged.
          training: Whether noisy layers draw noise.
          fractions: The fractions tau in [0, 1], `[B(, T), N]`; by default evenly
            spaced.
        """
        observation, squash = self._encoder.squash(observation)
        encoding, network_state = self._encoder(
            observation, step_type, network_state, training=training
        )
        if fractions is None:
            middles = (tf.range(self._num_quantiles, dtype=tf.float32) + 0.5) / float(
                self._num_quantiles
            )
            fractions = tf.broadcast_to(
                middles, [tf.shape(encoding)[0], self._num_quantiles]
            )
        else:
            fractions = squash.flatten(fractions)
        products = self._product(encoding, fractions)
        for layer in self._dense_layers:
            products = layer(products, training=training)
        quantiles = self._head(products, training=training)
        return squash.unflatten(tf.transpose(quantiles, [0, 2, 1])), network_state
