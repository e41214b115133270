"""OAREmbedding: embeds observation, last action and last reward together."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import module_network, utils
from tfrl.networks.construction import recorded_layer


@keras.saving.register_keras_serializable("tfrl")
class OAREmbedding(recorded_layer.RecordedLayer):
    """Joins the torso's embedding, the action as one-hot vector, and `tanh(reward)`.

    R2D2 and IMPALA feed the last action and reward to their networks in this way. The
    inputs are a nest with the fields `observation`, `action` and `reward`.
    """

    def __init__(self, torso: Any, num_actions: int, **kwargs: Any):
        """Takes the torso, which is not copied, so that weights can be shared.

        Args:
          torso: A Keras layer, stateless Network or function of the observation.
          num_actions: The number of actions.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**{"autocast": False, **kwargs})
        self.torso = module_network.as_layer(torso)
        self._num_actions = num_actions

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the embeddings, `[B, n + num_actions + 1]`; or `[B, T, ...]`.

        Args:
          inputs: A namedtuple or dictionary: the observation `[B, ...]`, actions `[B]`
            of integers, and rewards `[B]` or `[B, 1]`; or all of them with a time
            dimension, `[B, T, ...]`.
          training: Passed to the torso.
        """
        observation, action, reward = (
            utils.field(inputs, name) for name in ("observation", "action", "reward")
        )
        squash = utils.BatchSquash(action.shape.rank)
        observation = tf.nest.map_structure(squash.flatten, observation)
        features = utils.call_layer(self.torso, observation, training)
        dtype = features.dtype
        one_hot = tf.one_hot(squash.flatten(action), self._num_actions, dtype=dtype)
        reward = tf.tanh(tf.reshape(tf.cast(reward, dtype), [-1, 1]))
        return squash.unflatten(tf.concat([features, one_hot, reward], axis=-1))
