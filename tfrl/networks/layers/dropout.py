"""Dropout whose masks are the same in plain and compiled graphs, and on replicas."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfrl.networks.construction import recorded_layer
from tfrl.utils.random_numbers import seeds


@keras.saving.register_keras_serializable("tfrl")
class Dropout(recorded_layer.RandomLayer):
    """Sets units of `[..., B, n]` to 0 at a rate, and divides the others by `1 - rate`.

    It does so with `training=True` alone.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any):
        """Creates the layer.

        Args:
          rate: The share of the units that are set to 0, below 1.
          seed: See `RandomLayer`.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(seed, **kwargs)
        self._rate = rate

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the inputs, in training with units set to 0."""
        if not training:
            return inputs
        shape = tf.shape(inputs)
        noise = seeds.uniform(self.next_seed(), shape, batch_axis=inputs.shape.rank - 2)
        kept = inputs / tf.cast(1 - self._rate, inputs.dtype)
        return tf.where(noise < self._rate, tf.zeros_like(kept), kept)
