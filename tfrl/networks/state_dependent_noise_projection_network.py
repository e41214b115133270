"""`StateDependentNoiseProjectionNetwork`: actions with state-dependent exploration.

Raffin, Kober and Stulp, "Smooth exploration for robotic reinforcement learning" (2021,
arXiv:2005.05719), section 3: generalized state-dependent exploration, gSDE.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from typing_extensions import override

from tfrl.networks import normal_projection_network
from tfrl.networks.construction import seeding
from tfrl.typing import types

# Added to the variance, so that the density stays finite where all features are 0.
_LEAST_VARIANCE = 1e-6


class StateDependentNoiseProjectionNetwork(
    normal_projection_network.GaussianProjectionNetwork
):
    """Predicts normal actions whose noise is linear in the hidden state.

    With the hidden state `z [n]`, learned deviations `std [n, A]` and a matrix `E` of
    standard normal numbers, the noise is `z (std * E)`; its component `j` has the
    variance `sum_i z_i^2 std_ij^2`. Losses use this distribution. A
    `StateDependentNoisePolicy` keeps `E` for several steps, during which the action is
    a smooth function of the state.
    """

    def __init__(
        self,
        sample_spec: types.TensorSpec,
        initial_log_std: float = -3.0,
        learn_features: bool = False,
        scale_distribution: bool = True,
        name: str | None = "StateDependentNoiseProjectionNetwork",
        *,
        seed: int | None = None,
        kernel_initializer: Any = None,
    ):
        """Makes the layer of the means.

        Args:
          sample_spec: The bounded float spec of the actions, of one dimension or more.
          initial_log_std: The initial logarithm of all deviations.
          learn_features: Whether gradients flow through the variance into the hidden
            state; by default no gradient flows, as in the authors' code.
          scale_distribution: Whether samples are squashed into the bounds with a tanh:
            the distribution is then a `SquashToSpecNormal`.
          name: The network's name.
          seed: Seed of the initial kernel; None follows `tf.random.set_seed`.
          kernel_initializer: Of the layer of the means; by default Glorot's uniform
            one.

        Raises:
          ValueError: `sample_spec` is not a single spec of floats, or has no dimension.
        """
        normal_projection_network.check_sample_spec(
            sample_spec, "State Dependent Noise"
        )
        if sample_spec.shape.rank == 0:
            raise ValueError(
                f"sample_spec: got {sample_spec}, expected at least one dimension; "
                "give the actions shape [1]."
            )
        super().__init__(
            sample_spec,
            normal_projection_network.normal_distribution_spec(
                sample_spec, scale_distribution, _build
            ),
            name,
        )
        self._initial_log_std = initial_log_std
        self._learn_features = learn_features
        self._means_layer = keras.layers.Dense(
            int(np.prod(sample_spec.shape)),
            kernel_initializer=seeding.clone_initializer(
                kernel_initializer or keras.initializers.GlorotUniform(),
                seeding.SeedStream(seed)(),
            ),
            name="means_projection_layer",
        )

    def build(self, input_shape: Any = None) -> None:
        """Makes the logarithms of the deviations, `[n, A]`."""
        self._log_std = self.add_weight(
            name="log_std",
            shape=(input_shape[-1], self._means_layer.units),
            initializer=keras.initializers.Constant(self._initial_log_std),
        )

    @override
    def _moments(self, hidden: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        variance = tf.matmul(
            tf.square(self._features(hidden)), tf.square(self._noise_std())
        )
        return self._means_layer(hidden), tf.sqrt(variance + _LEAST_VARIANCE)

    @override
    def _distribution(self, loc: tf.Tensor, scale: tf.Tensor, inputs: tf.Tensor) -> Any:
        return self.output_spec.build_distribution(
            loc=loc,
            scale=scale,
            features=self._features(inputs),
            noise_std=self._noise_std(),
        )

    def _features(self, hidden: tf.Tensor) -> tf.Tensor:
        return hidden if self._learn_features else tf.stop_gradient(hidden)

    def _noise_std(self) -> tf.Tensor:
        log_std = tf.convert_to_tensor(self._log_std)
        return tf.exp(tf.cast(log_std, self._sample_spec.dtype))


def _build(
    loc: tf.Tensor, scale: tf.Tensor, features: Any = None, noise_std: Any = None
) -> Any:
    from tfrl.distributions import state_dependent_normal

    return state_dependent_normal.StateDependentNormal(loc, scale, features, noise_std)
