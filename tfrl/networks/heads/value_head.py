"""The last layers of Q-networks, and of a policy with a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import utils
from tfrl.networks.construction import recorded_layer, seeding
from tfrl.networks.layers import dense, noisy
from tfrl.utils import number_checks


class ValueHead(keras.layers.Layer):
    """Maps encodings `[B, k]` to `[B, n]` for n actions, or to `[B, n, m]`.

    By default it is one dense layer. A dueling head has two stacks of layers, for the
    state's value V and the actions' advantages A, and returns

        V(x) + A(x, a) - mean over a' of A(x, a')

    for each of the m numbers (Wang et al., "Dueling network architectures for deep
    reinforcement learning", 2016, arXiv:1511.06581, equation 9; for distributions,
    Hessel et al., "Rainbow", 2018, arXiv:1710.02298).
    """

    def __init__(
        self,
        num_actions: int,
        numbers_per_action: int | None = None,
        *,
        dueling_layer_params: Sequence[int] | None = None,
        noisy_stddev: float | None = None,
        hidden_activation: utils.Activation = "relu",
        activation: utils.Activation = None,
        dtype: Any = tf.float32,
        seeds: seeding.SeedStream,
    ):
        """Creates the layers.

        Args:
          num_actions: The number n of actions.
          numbers_per_action: The number m of outputs of each action, such as the atoms
            or the quantiles of its return; None returns values `[B, n]`.
          dueling_layer_params: The units of the hidden layers of each stack of a
            dueling head, `()` for two linear layers; None makes no dueling head.
          noisy_stddev: The first scale of the noise in the weights of all layers of the
            head, 0.5 in the paper; see `NoisyDense`. None makes plain layers.
          hidden_activation: The activation of hidden layers.
          activation: The activation of the last layer.
          dtype: As for `QNetwork`.
          seeds: Seeds the layers.

        Raises:
          ValueError: A number is out of range.
        """
        super().__init__(dtype=utils.head_dtype(dtype), name="q_values")
        if numbers_per_action is not None:
            number_checks.check_integer(
                "numbers_per_action", numbers_per_action, 1, remedy="or give None"
            )
        self._shape = [num_actions]
        if numbers_per_action is not None:
            self._shape.append(numbers_per_action)
        self._noisy_stddev = noisy_stddev
        self._hidden_activation = hidden_activation
        self._activation = activation
        self._hidden_dtype = utils.dtype_name(dtype)
        self._is_dueling = dueling_layer_params is not None
        hidden, numbers = dueling_layer_params or (), numbers_per_action or 1
        self._advantages = self._stack(hidden, num_actions * numbers, seeds)
        self._values = self._stack(hidden, numbers, seeds) if self._is_dueling else []

    def build(self, input_shape: Any) -> None:
        """Makes no variables, since the layers inside build themselves when called."""

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns `[..., n]` or `[..., n, m]` for encodings `[..., k]`."""

        def apply(stack: Any, shape: list[int]) -> tf.Tensor:
            outputs = inputs
            for layer in stack:
                outputs = layer(outputs, training=training)
            if len(shape) == 1:
                return outputs
            return tf.reshape(outputs, tf.concat([tf.shape(inputs)[:-1], shape], 0))

        outputs = apply(self._advantages, self._shape)
        if not self._is_dueling:
            return outputs
        axis = -len(self._shape)
        outputs -= tf.reduce_mean(outputs, axis=axis, keepdims=True)
        return apply(self._values, [1, *self._shape[1:]]) + outputs

    def _stack(
        self, hidden: Sequence[int], units: int, seeds: seeding.SeedStream
    ) -> list[keras.layers.Layer]:
        if self._noisy_stddev is None:
            layers = utils.dense_layers(
                hidden,
                dropout_layer_params=None,
                weight_decay_params=None,
                activation_fn=self._hidden_activation,
                kernel_initializer=None,
                seeds=seeds,
                dtype=self._hidden_dtype,
            )
            return [*layers, _last(units, self._activation, self.dtype_policy, seeds())]
        layers = [
            noisy.NoisyDense(
                size, self._hidden_activation, self._noisy_stddev, seed=seeds()
            )
            for size in hidden
        ]
        return [
            *layers,
            noisy.NoisyDense(units, self._activation, self._noisy_stddev, seed=seeds()),
        ]


def _last(
    units: int, activation: utils.Activation, dtype: Any, seed: int
) -> keras.layers.Layer:
    """Returns a layer with small initial weights."""
    return keras.layers.Dense(
        utils.units(units),
        activation=activation,
        kernel_initializer=keras.initializers.RandomUniform(-0.03, 0.03, seed=seed),
        bias_initializer=keras.initializers.Constant(-0.2),
        dtype=dtype,
    )


@keras.saving.register_keras_serializable("tfrl")
class PolicyValueHead(recorded_layer.RecordedLayer):
    """Returns `(logits, value)` by two dense layers, as IMPALA's networks do."""

    def __init__(self, num_actions: int, **kwargs: Any):
        """Creates the layer.

        Args:
          num_actions: The number of actions.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        (self._policy_layer,) = dense.layers([num_actions])
        (self._value_layer,) = dense.layers([1])

    def call(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns logits `[..., num_actions]` and values `[...]` of `[..., n]`."""
        value = tf.squeeze(self._value_layer(inputs), axis=-1)
        return self._policy_layer(inputs), value
