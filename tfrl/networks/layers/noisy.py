"""NoisyDense: a dense layer that explores by noise in its weights."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf

from tfrl.compilation import internals
from tfrl.networks import utils
from tfrl.networks.construction import recorded_layer, seeding
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds


@keras.saving.register_keras_serializable("tfrl")
class NoisyDense(recorded_layer.RandomLayer):
    """A dense layer whose weights have learned noise while training.

        y = (W + S_W * (f(e) f(e')^T)) x + b + S_b * f(e'),   f(u) = sgn(u) sqrt(|u|)

    Each call with `training=True` draws the normal noise e (of the inputs) and e' (of
    the units) once, for all examples. A call with `training=False` has no noise.
    Fortunato et al., "Noisy networks for exploration" (2018, arXiv:1706.10295),
    equations 9 to 11, with the initial weights of its section 3.2.
    """

    def __init__(
        self,
        units: int,
        activation: utils.Activation = None,
        initial_stddev: float = 0.5,
        seed: int | None = None,
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          units: The number of units.
          activation: The activation.
          initial_stddev: The first scale of the noise: for n inputs, S_W and S_b start
            at `initial_stddev / sqrt(n)`.
          seed: The seed of the initial weights and of the noise; see `RandomLayer`.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: `units` is not positive, or `initial_stddev` is negative.
        """
        super().__init__(seed, **kwargs)
        number_checks.check_integer("units", units, 1, remedy="give a positive number")
        number_checks.check_number(
            "initial_stddev", initial_stddev, 0, remedy="the paper takes 0.5"
        )
        self._units = units
        self._activation = keras.activations.get(activation)
        self._initial_stddev = initial_stddev
        draws: list[int | None] = [None, None]
        if seed is not None:
            stream = seeding.SeedStream(seed)
            draws = [stream(), stream()]
        # Without a seed, `seeding.seed_layer` seeds them.
        self._kernel_initializer = keras.initializers.VarianceScaling(
            1 / 3, "fan_in", "uniform", seed=draws[0]
        )
        self._bias_initializer = keras.initializers.RandomUniform(-1, 1, seed=draws[1])

    def build(self, input_shape: Any) -> None:
        """Creates the weights."""
        size = input_shape[-1]
        scale = keras.initializers.Constant(self._initial_stddev / math.sqrt(size))

        def weight(name: str, shape: tuple[int, ...], initializer: Any) -> Any:
            return self.add_weight(shape=shape, initializer=initializer, name=name)

        self._kernel = weight("kernel", (size, self._units), self._kernel_initializer)
        self._kernel_stddev = weight("kernel_stddev", (size, self._units), scale)
        self._bias = weight("bias", (self._units,), self._bias_of(size))
        self._bias_stddev = weight("bias_stddev", (self._units,), scale)

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the outputs `[..., units]` of inputs `[..., n]`."""
        kernel, bias = map(tf.convert_to_tensor, (self._kernel, self._bias))
        outputs = tf.tensordot(inputs, kernel, axes=1) + bias
        if training:
            of_inputs, of_units = (
                _spread(seeds.normal(seed, [size], inputs.dtype, batch_axis=None))
                for seed, size in zip(
                    seeds.split_seed(self.next_seed(), 2), kernel.shape, strict=True
                )
            )
            kernel, bias = map(
                tf.convert_to_tensor, (self._kernel_stddev, self._bias_stddev)
            )
            # The factors of the noise multiply inputs `[..., n]` and outputs `[...,
            # units]`, which takes less work than a matrix `[n, units]`.
            noise = tf.tensordot(inputs * of_inputs, kernel, axes=1) + bias
            outputs += noise * of_units
        return self._activation(outputs)

    def _bias_of(self, size: int) -> Any:
        def initialize(shape: Any, dtype: Any = None) -> Any:
            return self._bias_initializer(shape, dtype=dtype) / math.sqrt(size)

        return initialize


def is_noisy(network: Any) -> bool:
    """Whether a network, or a Keras layer, has `NoisyDense` layers at any depth."""
    layers = internals.flatten_layers(network)
    return any(isinstance(layer, NoisyDense) for layer in layers)


def _spread(noise: tf.Tensor) -> tf.Tensor:
    return tf.sign(noise) * tf.sqrt(tf.abs(noise))
