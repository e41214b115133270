"""IQNHead: quantiles of returns at random fractions, for implicit quantile networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tfrl.networks import quantile_q_network
from tfrl.networks.construction import recorded_layer
from tfrl.networks.layers import dense
from tfrl.utils.random_numbers import seeds


class Quantiles(NamedTuple):
    """Quantiles of the returns of each action.

    Attributes:
      values: The quantiles, `[..., N, num_actions]`.
      fractions: The fractions tau in [0, 1) of the quantiles, `[..., N]`.
    """

    values: tf.Tensor
    fractions: tf.Tensor

    def mean(self) -> tf.Tensor:
        """Returns the action values, the means over the fractions."""
        return tf.reduce_mean(self.values, axis=-2)


@keras.saving.register_keras_serializable("tfrl")
class IQNHead(recorded_layer.RandomLayer):
    """Returns quantiles of each action's returns at random fractions.

    The embedding is multiplied by `relu(dense(cosine_features(tau)))`, and an MLP maps
    the product to one quantile for each action.
    """

    def __init__(
        self,
        num_actions: int,
        hidden_sizes: Sequence[int] = (512,),
        num_quantiles: int = 64,
        num_cosines: int = 64,
        seed: int | None = None,
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          num_actions: The number of actions.
          hidden_sizes: The number of units of the MLP's hidden layers.
          num_quantiles: The number N of fractions that are drawn.
          num_cosines: The number of cosine features of a fraction.
          seed: The seed of the fractions; see `RandomLayer`.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(seed, **kwargs)
        self._num_quantiles = num_quantiles
        self._product = quantile_q_network.ProductWithFractions(num_cosines)
        self._mlp = dense.layers([*hidden_sizes, num_actions])

    def call(self, inputs: tf.Tensor, fractions: tf.Tensor | None = None) -> Quantiles:
        """Returns the quantiles for embeddings `[..., n]`.

        Args:
          inputs: The embeddings.
          fractions: The fractions tau, `[..., N]`; by default uniformly random.
        """
        if fractions is None:
            shape = tf.concat([tf.shape(inputs)[:-1], [self._num_quantiles]], axis=0)
            fractions = seeds.uniform(self.next_seed(), shape, dtype=inputs.dtype)
            fractions = tf.ensure_shape(
                fractions, inputs.shape[:-1].concatenate(self._num_quantiles)
            )
        values = dense.apply(self._mlp, self._product(inputs, fractions))
        return Quantiles(values, fractions)
