"""Makes actors and critics with the initialisation that published scores assume."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import (
    actor_distribution_network,
    actor_distribution_rnn_network,
    categorical_projection_network,
    encoding_network,
    network,
    normal_projection_network,
    sequential,
    state_dependent_noise_projection_network,
    utils,
    value_network,
    value_rnn_network,
)
from tfrl.networks.construction import seeding
from tfrl.networks.layers import encoders
from tfrl.typing import types


def create_networks(
    observation_spec: types.NestedTensorSpec,
    action_spec: types.NestedTensorSpec,
    fc_layer_params: Sequence[int] = (64, 64),
    *,
    conv_layer_params: Sequence[Any] | None = None,
    encoder: Any = None,
    lstm_size: Sequence[int] | None = None,
    output_fc_layer_params: Sequence[int] | None = None,
    activation_fn: Any = keras.activations.tanh,
    initial_log_stddev: float = 0.0,
    state_dependent_noise: bool = False,
    share_layers: bool = False,
    dtype: Any = tf.float32,
    seed: int | None = None,
) -> tuple[network.Network, network.Network]:
    """Makes an actor and a critic.

    All kernels are orthogonal, with a gain of the root of 2 in the hidden layers, 0.01
    in the actor's last layer and 1 in the critic's, and all biases are 0; only an LSTM
    has Keras' initialisation. Continuous actions are normal; their means are not
    squashed, and the logarithms of their standard deviations are variables that start
    at 0 by default. Stable-Baselines3 and CleanRL initialise their networks in the same
    way; Andrychowicz et al., "What matters in on-policy reinforcement learning?" (2020,
    arXiv:2006.05990), compare this initialisation with others.

    Args:
      observation_spec: The nest of specs of the networks' observations, which
        `networks.observation_encoder` encodes.
      action_spec: The nest of bounded action specs.
      fc_layer_params: The units of each dense layer.
      conv_layer_params: `(filters, kernel_size, strides)` of each convolution of every
        image among the observations. None chooses by the images' sizes; `()` makes no
        convolutions, so that images are flattened.
      encoder: Own layers before the dense ones; see `networks.observation_encoder`.
      lstm_size: The units of each LSTM cell after the dense layers; actor and critic
        have separate cells, and each has a state. None for networks without a state.
      output_fc_layer_params: The units of each dense layer after the LSTM cells.
      activation_fn: The activation of all hidden layers.
      initial_log_stddev: The initial logarithm of the standard deviations of continuous
        actions.
      state_dependent_noise: Whether continuous actions have noise that depends on the
        last hidden layer, for a `StateDependentNoisePolicy`; `initial_log_stddev` then
        applies to the deviations of its noise matrix.
      share_layers: Whether actor and critic share the layers that encode observations,
        and those of `fc_layer_params`. An update computes them once, which nearly
        halves its time for images.
      dtype: float32 or float64, the dtype of all hidden layers; or a Keras dtype policy
        for mixed precision, such as "mixed_bfloat16", with which variables and last
        layers stay in float32.
      seed: Seeds all initialisers; None follows `tf.random.set_seed`.

    Returns:
      The actor and the critic.

    Raises:
      ValueError: There are `output_fc_layer_params`, but no LSTM; `dtype` has variables
        in half precision; or the observations or `conv_layer_params` are refused by
        `networks.observation_encoder`.
    """
    variables = keras.dtype_policies.get(utils.dtype_name(dtype)).variable_dtype
    if variables not in ("float32", "float64"):
        raise ValueError(
            f"dtype: got {dtype!r}, expected variables in float32 or float64, since "
            "orthogonal kernels cannot be computed in half precision; use "
            f"'mixed_{variables}' for products in it."
        )
    if output_fc_layer_params and lstm_size is None:
        raise ValueError(
            f"output_fc_layer_params: got {tuple(output_fc_layer_params)} without "
            "lstm_size, expected none; add the layers to fc_layer_params."
        )
    seeds = seeding.SeedStream(seed)
    common: dict[str, Any] = {
        "activation_fn": activation_fn,
        "dtype": dtype,
        "kernel_initializer": keras.initializers.Orthogonal(math.sqrt(2)),
    }
    encoding: dict[str, Any] = {
        **common,
        **encoders.observation_encoder(
            observation_spec,
            conv_layer_params=conv_layer_params,
            encoder=encoder,
            **common,
        ),
    }
    torso = None
    if share_layers:
        torso = encoding_network.EncodingNetwork(
            observation_spec, fc_layer_params=fc_layer_params, seed=seeds(), **encoding
        )
        encoding = common
        observation_spec, fc_layer_params = torso.create_variables(), ()
    make_actor: Any = actor_distribution_network.ActorDistributionNetwork
    make_critic: Any = value_network.ValueNetwork
    if lstm_size is None:
        encoding["fc_layer_params"] = fc_layer_params
    else:
        make_actor = actor_distribution_rnn_network.ActorDistributionRnnNetwork
        make_critic = value_rnn_network.ValueRnnNetwork
        encoding["input_fc_layer_params"] = fc_layer_params
        encoding["lstm_size"] = lstm_size
        encoding["output_fc_layer_params"] = output_fc_layer_params
    head = _noise_head if state_dependent_noise else _continuous_head
    actor = make_actor(
        observation_spec,
        action_spec,
        discrete_projection_net=_discrete_head,
        continuous_projection_net=functools.partial(
            head, initial_log_stddev=initial_log_stddev
        ),
        seed=seeds(),
        **encoding,
    )
    critic = make_critic(
        observation_spec,
        value_kernel_initializer=keras.initializers.Orthogonal(1.0),
        seed=seeds(),
        **encoding,
    )
    if torso is None:
        return actor, critic
    return (
        sequential.Sequential([torso, actor], name=actor.name),
        sequential.Sequential([torso, critic], name=critic.name),
    )


_SMALL = 0.01  # The gain of the actor's last layer.


def _discrete_head(action_spec: Any, *, seed: int) -> network.DistributionNetwork:
    return categorical_projection_network.CategoricalProjectionNetwork(
        action_spec, seed=seed, kernel_initializer=keras.initializers.Orthogonal(_SMALL)
    )


def _continuous_head(
    action_spec: Any, *, seed: int, initial_log_stddev: float
) -> network.DistributionNetwork:
    return normal_projection_network.NormalProjectionNetwork(
        action_spec,
        mean_transform=None,
        std_transform=tf.exp,
        std_bias_initializer_value=initial_log_stddev,
        seed=seed,
        kernel_initializer=keras.initializers.Orthogonal(_SMALL),
    )


def _noise_head(
    action_spec: Any, *, seed: int, initial_log_stddev: float
) -> network.DistributionNetwork:
    projection = state_dependent_noise_projection_network
    return projection.StateDependentNoiseProjectionNetwork(
        action_spec,
        initial_log_std=initial_log_stddev,
        scale_distribution=False,
        seed=seed,
        kernel_initializer=keras.initializers.Orthogonal(_SMALL),
    )
