"""Makes an actor and a value network from one network of logits and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.networks import network as network_lib
from tfrl.networks import sequential

if TYPE_CHECKING:
    from tfrl.typing import types


def split_network(
    network: types.Network,
    observation_spec: types.NestedTensorSpec,
    action_spec: tf.TypeSpec,
) -> tuple[network_lib.Network, network_lib.Network]:
    """Returns the actor and the value network of an agent, which share all weights.

    Args:
      network: A `Network`, or a Keras layer or model, that maps observations to
        `(logits, value)`, of shapes `[B, num_actions]` and `[B]`, such as a
        `Sequential([..., PolicyValueHead(num_actions)])`. If it is recurrent, both
        networks keep its state.
      observation_spec: The nest of specs of the observations.
      action_spec: The spec of the action, an integer whose lowest value is 0.
    """
    dtype = action_spec.dtype
    network = network_lib.as_network(network, observation_spec)

    def to_distribution(output: tuple[tf.Tensor, tf.Tensor]) -> Any:
        return tfp.distributions.Categorical(logits=output[0], dtype=dtype)

    def to_value(output: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        return output[1]

    return (
        sequential.Sequential([network, to_distribution], observation_spec),
        sequential.Sequential([network, to_value], observation_spec),
    )
