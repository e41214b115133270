"""CriticMultiplexer: joins observations and actions for a critic."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import utils
from tfrl.networks.construction import recorded_layer


@keras.saving.register_keras_serializable("tfrl")
class CriticMultiplexer(recorded_layer.RecordedLayer):
    """Returns `critic_network(join(observation_network(o), action_network(a)))`.

    Each of the networks may be a Keras layer, a stateless Network or a function, or
    None, which passes its input on unchanged. `join` is `utils.batch_concat` after
    a cast to the layer's dtype, float32 by default.

    Call it with a pair, `multiplexer((observation, action))`, as a critic of this
    package is called, or with two arguments, `multiplexer(observation, action)`.
    """

    takes_one_outer_dim = True

    def __init__(
        self,
        critic_network: Any = None,
        observation_network: Any = None,
        action_network: Any = None,
        **kwargs: Any,
    ):
        """Takes the networks, which are not copied, so that weights can be shared.

        Args:
          critic_network: Takes the joined observation and action, `[B, n]`.
          observation_network: Takes the observation, a nest of `[B, ...]`.
          action_network: Takes the action, a nest of `[B, ...]`.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        # The networks get uint8 images and integer actions unchanged.
        super().__init__(**{"autocast": False, **kwargs})
        self.critic_network = utils.as_layer(critic_network)
        self.observation_network = utils.as_layer(observation_network)
        self.action_network = utils.as_layer(action_network)

    def call(self, observation: Any, action: Any = None, training: bool = False) -> Any:
        """Returns the output of the critic network.

        Args:
          observation: A nest of tensors `[B, ...]`, or a pair of this nest and the
            action.
          action: A nest of tensors `[B, ...]`; None if `observation` is a pair.
          training: Passed to the networks.
        """
        if action is None:
            observation, action = observation
        joined = [
            _apply(self.observation_network, observation, training),
            _apply(self.action_network, action, training),
        ]
        cast = tf.nest.map_structure(lambda x: tf.cast(x, self.compute_dtype), joined)
        return _apply(self.critic_network, utils.batch_concat(cast), training)


def _apply(layer: Any, inputs: Any, training: bool) -> Any:
    return inputs if layer is None else utils.call_layer(layer, inputs, training)
