"""ClippedGaussian: adds noise to actions, for exploration."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfrl.networks.construction import recorded_layer
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds


@keras.saving.register_keras_serializable("tfrl")
class ClippedGaussian(recorded_layer.RandomLayer):
    """Adds normal noise to its inputs and clips the sums to [-1, 1].

    `policies.GaussianPolicy` is a policy that adds such noise.
    """

    def __init__(self, stddev: float, seed: int | None = None, **kwargs: Any):
        """Creates the layer.

        Args:
          stddev: The standard deviation of the noise, at least 0.
          seed: The seed of the noise; see `RandomLayer`.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If `stddev` is negative.
        """
        super().__init__(seed, **kwargs)
        number_checks.check_number(
            "stddev", stddev, 0, remedy="it is the standard deviation of the noise"
        )
        self._stddev = stddev

    def call(self, inputs: Any) -> Any:
        """Returns the noisy actions, a nest like `inputs`."""
        leaves = tf.nest.flatten(inputs)
        noisy = [
            tf.clip_by_value(
                leaf + self._stddev * seeds.normal(seed, tf.shape(leaf), leaf.dtype),
                -1,
                1,
            )
            for leaf, seed in zip(
                leaves, seeds.split_seed(self.next_seed(), len(leaves)), strict=True
            )
        ]
        return tf.nest.pack_sequence_as(inputs, noisy)
