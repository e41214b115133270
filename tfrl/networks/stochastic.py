"""Layers that follow a head and turn its distribution into actions."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfrl.distributions import sampling
from tfrl.networks import recorded_layer


class _DistributionLayer(recorded_layer.RecordedLayer):
    """Base class of layers that take a distribution."""

    def __call__(self, distribution: Any, **kwargs: Any) -> tf.Tensor:
        # Keras takes only tensors by position.
        return super().__call__(distribution=distribution, **kwargs)


@keras.saving.register_keras_serializable("tfrl")
class StochasticModeHead(_DistributionLayer):
    """Returns the mode of a distribution: the greedy action."""

    def call(self, distribution: Any) -> tf.Tensor:
        """Returns the mode, `[B, ...]`."""
        return distribution.mode()


@keras.saving.register_keras_serializable("tfrl")
class StochasticMeanHead(_DistributionLayer):
    """Returns the mean of a distribution."""

    def call(self, distribution: Any) -> tf.Tensor:
        """Returns the mean, `[B, ...]`."""
        return distribution.mean()


@keras.saving.register_keras_serializable("tfrl")
class StochasticSamplingHead(_DistributionLayer):
    """Returns a sample of a distribution.

    Seeds come from `seed_generator`, whose state is a variable that every call
    advances. The samples are those of `tfrl.distributions.sampling`, the same whether
    XLA compiles the graph or not. A policy that draws its own samples, such as
    `ActorPolicy`, does not need this layer: give it the distribution.
    """

    def __init__(self, seed: int | None = None, **kwargs: Any):
        """Creates the layer.

        Args:
          seed: The seed of the samples; None draws one. `Sequential(seed=...)` sets it.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, distribution: Any) -> tf.Tensor:
        """Returns one sample for each distribution of the batch, `[B, ...]`."""
        return sampling.sample(
            distribution, tf.cast(self.seed_generator.next(), tf.int64)
        )
