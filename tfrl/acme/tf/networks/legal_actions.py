"""Networks for environments that mark the legal actions.

The policies of this package take an `observation_and_action_constraint_splitter`, which
does the same for every agent and network. This module has Acme's networks for this
purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.compilation import context
from tfrl.distributions import sampling
from tfrl.networks import module_network, network, sequential, utils
from tfrl.networks.construction import recorded_layer
from tfrl.utils.optimization import schedules

# Finite, since minus infinity would make the gradients of losses NaN.
_ILLEGAL = -1e9


class MaskedSequential(network.Network):
    """A `Sequential` with the value -1e9 for illegal actions, and 0 in terminal states.

    The observation is a nest with three fields: `observation`; `legal_actions`, `[...,
    num_actions]`, which is 1 or True for legal actions; and `terminal`, `[...]` or
    `[..., 1]`.
    """

    def __init__(
        self,
        layers: Sequence[Any],
        input_spec: Any = None,
        name: str | None = "MaskedSequential",
        *,
        seed: int | None = None,
    ):
        """Creates the network.

        Args:
          layers: As for `Sequential`; they are applied to the field `observation`.
          input_spec: The nest of specs of the observations.
          name: The network's name.
          seed: As for `Sequential`.
        """
        spec = None if input_spec is None else utils.field(input_spec, "observation")
        stack = sequential.Sequential(layers, spec, seed=seed)
        super().__init__(input_spec, stack.state_spec, name)
        self._stack = stack

    def copy(self, **kwargs: Any) -> MaskedSequential:
        """Makes a new network from copies of the layers, without their weights."""
        if "layers" not in kwargs:
            kwargs["layers"] = self._stack.copy().layers
        copied: MaskedSequential = super().copy(**kwargs)
        return copied

    def call(
        self,
        inputs: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[Any, Any]:
        """Returns the masked action values and the new state."""
        values, state = self._stack(
            utils.field(inputs, "observation"),
            step_type=step_type,
            network_state=network_state,
            training=training,
        )
        is_legal = tf.cast(utils.field(inputs, "legal_actions"), tf.bool)
        is_end = tf.cast(utils.field(inputs, "terminal"), tf.bool)
        if is_end.shape.rank < values.shape.rank:
            is_end = is_end[..., tf.newaxis]
        values = tf.where(is_legal, values, tf.constant(_ILLEGAL, values.dtype))
        return tf.where(is_end, tf.zeros_like(values), values), state


def epsilon_greedy(
    action_values: tf.Tensor, epsilon: Any, is_legal: tf.Tensor
) -> tf.Tensor:
    """Returns the probabilities of an epsilon-greedy policy among legal actions.

    All legal actions share `epsilon` evenly; the legal actions of the largest value
    share the rest.

    Args:
      action_values: Floats `[..., num_actions]`.
      epsilon: A number in [0, 1], or a scalar tensor.
      is_legal: Bools `[..., num_actions]`.

    Raises:
      tf.errors.InvalidArgumentError: If no action of a row is legal, except under XLA,
        where the probabilities of the row are NaN.
    """
    has_legal = tf.reduce_all(tf.reduce_any(is_legal, axis=-1))
    message = "is_legal: no action of a row is legal; expected one; correct the mask."
    with tf.control_dependencies([context.assert_true(has_legal, [message])]):
        is_legal = tf.identity(is_legal)
    dtype = action_values.dtype
    values = tf.where(is_legal, action_values, dtype.min)
    is_greedy = is_legal & (values == tf.reduce_max(values, axis=-1, keepdims=True))
    epsilon = tf.cast(epsilon, dtype)
    return epsilon * _evenly(is_legal, dtype) + (1 - epsilon) * _evenly(
        is_greedy, dtype
    )


def _evenly(chosen: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    weights = tf.cast(chosen, dtype)
    return weights / tf.reduce_sum(weights, axis=-1, keepdims=True)


@keras.saving.register_keras_serializable("tfrl")
class EpsilonGreedy(recorded_layer.RecordedLayer):
    """Returns the epsilon-greedy distribution of actions with values above a bound."""

    def __init__(self, epsilon: Any, threshold: float, **kwargs: Any):
        """Creates the layer.

        Args:
          epsilon: The probability of a random action: a number, a scalar tensor or
            variable, or a function that returns one.
          threshold: Actions with values at or below the threshold are illegal, such as
            the actions masked by `MaskedSequential`.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self._set_untracked("_epsilon", epsilon)
        self._threshold = threshold

    def call(self, action_values: tf.Tensor) -> Any:
        """Returns a `Categorical` for action values `[..., num_actions]`."""
        import tensorflow_probability as tfp

        return tfp.distributions.Categorical(
            probs=epsilon_greedy(
                action_values,
                schedules.current_value(self._epsilon),
                action_values > self._threshold,
            )
        )


@keras.saving.register_keras_serializable("tfrl")
class NetworkWithMaskedEpsilonGreedy(recorded_layer.RandomLayer):
    """Returns epsilon-greedy actions of a Q-network, legal ones only.

    The observation is a dictionary in which `legal_actions_mask`, `[B, num_actions]`,
    is 1 or True where an action is legal. The network takes the whole dictionary.
    """

    def __init__(
        self, network: Any, epsilon: Any = 0.0, seed: int | None = None, **kwargs: Any
    ):
        """Takes the network, which is not copied, so that weights can be shared.

        Args:
          network: A Keras layer, stateless Network or function that returns action
            values `[B, num_actions]`.
          epsilon: As for `EpsilonGreedy`.
          seed: The seed of the actions; see `RandomLayer`.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(seed, **{"autocast": False, **kwargs})
        self.network = module_network.as_layer(network)
        self._set_untracked("_epsilon", epsilon)

    def call(self, observation: Any, training: bool = False) -> tf.Tensor:
        """Returns the actions, int32 `[B]`."""
        import tensorflow_probability as tfp

        probs = epsilon_greedy(
            utils.call_layer(self.network, observation, training),
            schedules.current_value(self._epsilon),
            tf.cast(observation["legal_actions_mask"], tf.bool),
        )
        return sampling.sample(
            tfp.distributions.Categorical(probs=probs), self.next_seed()
        )
