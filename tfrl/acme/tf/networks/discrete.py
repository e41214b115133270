"""DiscreteFilteredQNetwork: the action values of discrete BCQ."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import module_network, utils
from tfrl.networks.construction import recorded_layer
from tfrl.utils import number_checks


@keras.saving.register_keras_serializable("tfrl")
class DiscreteFilteredQNetwork(recorded_layer.RecordedLayer):
    """Lowers the values of actions that are unlikely in the data, for discrete BCQ.

    The softmax of `g_network` is how likely each action is in the data. An action gets
    the smallest of the values if its probability, divided by the largest probability,
    is below the threshold. See
    Fujimoto et al., "Benchmarking batch deep reinforcement learning algorithms", 2019,
    section 4.
    """

    def __init__(self, g_network: Any, q_network: Any, threshold: float, **kwargs: Any):
        """Takes the networks, which are not copied, so that weights can be shared.

        Args:
          g_network: A Keras layer, stateless Network or function that returns logits
            `[..., num_actions]` of the data's actions.
          q_network: A layer, Network or function that returns action values `[...,
            num_actions]`.
          threshold: A number in [0, 1]; 0 keeps all actions, 1 only the likeliest.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If `threshold` is outside [0, 1].
        """
        super().__init__(**{"autocast": False, **kwargs})
        number_checks.check_number(
            "threshold", threshold, 0, 1, remedy="it is a ratio of probabilities"
        )
        self.g_network = module_network.as_layer(g_network)
        self.q_network = module_network.as_layer(q_network)
        self._threshold = threshold

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the filtered action values, `[..., num_actions]`."""
        q_values = utils.call_layer(self.q_network, inputs, training)
        probs = tf.nn.softmax(utils.call_layer(self.g_network, inputs, training))
        is_likely = probs >= self._threshold * tf.reduce_max(probs, -1, keepdims=True)
        return tf.where(is_likely, q_values, tf.reduce_min(q_values, -1, keepdims=True))
