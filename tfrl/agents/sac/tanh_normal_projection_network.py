"""`TanhNormalProjectionNetwork` maps a hidden state to a tanh-squashed normal.

Haarnoja et al., "Soft actor-critic algorithms and applications" (2018), appendix C.
"""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf
from typing_extensions import override

from tfrl.networks import normal_projection_network, utils
from tfrl.networks.construction import seeding
from tfrl.typing import types


def std_clip_transform(stddevs: tf.Tensor) -> tf.Tensor:
    """Returns `exp(stddevs)`, with the arguments clipped to [-20, 2].

    As the `std_transform` of a `TanhNormalProjectionNetwork`, this function keeps
    standard deviations finite for observations that are unlike all training data.
    """
    return tf.exp(tf.clip_by_value(stddevs, -20.0, 2.0))


class TanhNormalProjectionNetwork(normal_projection_network.GaussianProjectionNetwork):
    """Predicts a `SquashToSpecNormal`, whose samples lie inside the bounds.

    One dense layer gives means and standard deviations, so both depend on the input.
    Samples never reach the bounds themselves, which are the limits of the tanh.
    """

    def __init__(
        self,
        sample_spec: types.TensorSpec,
        activation_fn: utils.Activation = None,
        std_transform: Callable[[tf.Tensor], tf.Tensor] | None = tf.exp,
        name: str | None = "TanhNormalProjectionNetwork",
        *,
        seed: int | None = None,
    ):
        """Makes the layer.

        Args:
          sample_spec: The bounded float spec of the actions.
          activation_fn: The activation of the dense layer.
          std_transform: A function that maps outputs of the layer to standard
            deviations; None uses the outputs themselves.
          name: The network's name.
          seed: Seed of the initial kernel; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If `sample_spec` is not a single spec of floats.
        """
        normal_projection_network.check_sample_spec(sample_spec, "Tanh Normal")
        super().__init__(
            sample_spec,
            normal_projection_network.normal_distribution_spec(
                sample_spec, scale_distribution=True
            ),
            name,
        )
        self._std_transform = std_transform
        self._projection_layer = keras.layers.Dense(
            2 * int(np.prod(sample_spec.shape)),
            activation=activation_fn,
            kernel_initializer=keras.initializers.GlorotUniform(
                seed=seeding.SeedStream(seed)()
            ),
            name="projection_layer",
        )

    @override
    def _moments(self, hidden: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        means, stds = tf.split(self._projection_layer(hidden), 2, axis=-1)
        return means, stds if self._std_transform is None else self._std_transform(stds)
