"""`HeteroscedasticQNetwork`, which predicts rewards and their variances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tfrl.networks import encoding_network, network, q_network, utils
from tfrl.networks.construction import seeding
from tfrl.typing import types


class QBanditNetworkResult(NamedTuple):
    """The predicted rewards of arms, and the logarithms of their variances, `[B, A]`.

    Attributes:
      q_value_logits: The expected rewards.
      log_variance: The logarithms of the variances.
    """

    q_value_logits: Any
    log_variance: Any


class HeteroscedasticQNetwork(network.Network):
    """Maps observations to the mean and the variance of each arm's reward."""

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        action_spec: types.NestedTensorSpec,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        fc_layer_params: Sequence[int] | None = (75, 40),
        dropout_layer_params: Sequence[Any] | None = None,
        activation_fn: Any = keras.activations.relu,
        kernel_initializer: Any = None,
        batch_squash: bool = True,
        min_variance: float = 0.1,
        max_variance: float = 10000.0,
        dtype: Any = tf.float32,
        name: str | None = "HeteroscedasticQNetwork",
        *,
        seed: int | None = None,
    ) -> None:
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
          kernel_initializer: As for `EncodingNetwork`; not used in the last layers.
          batch_squash: As for `EncodingNetwork`.
          min_variance: The least variance.
          max_variance: The largest variance.
          dtype: As for `EncodingNetwork`.
          name: The network's name.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.
        """
        q_network.validate_specs(action_spec, input_tensor_spec)
        dtype = utils.dtype_name(dtype)
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
            seed=seeds(),
        )
        num_actions = q_network.num_actions_of(action_spec)
        self._heads = [
            keras.layers.Dense(
                num_actions,
                dtype=dtype,
                kernel_initializer=keras.initializers.RandomUniform(
                    -0.03, 0.03, seed=seeds()
                ),
            )
            for _ in QBanditNetworkResult._fields
        ]
        self._bounds = min_variance, max_variance

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[QBanditNetworkResult, Any]:
        """Returns a `QBanditNetworkResult`, and the state."""
        encoded, network_state = self._encoder(
            observation,
            step_type=step_type,
            network_state=network_state,
            training=training,
        )
        mean, raw = (head(encoded) for head in self._heads)
        result = QBanditNetworkResult(mean, log_variance(raw, *self._bounds))
        return result, network_state


def log_variance(
    raw: tf.Tensor, min_variance: float = 0.1, max_variance: float = 10000.0
) -> tf.Tensor:
    """Returns logarithms of variances between two, of a layer's output."""
    low, high = math.log(min_variance), math.log(max_variance)
    # Smooth bounds: a clipped number would have no gradient.
    return low + (high - low) * tf.sigmoid(raw)
