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

from tfrl.networks import network, normal_projection_network, utils
from tfrl.networks.construction import seeding
from tfrl.specs import distribution_spec
from tfrl.typing import types

# Added to the variance, so that the density stays finite where all features are 0.
_LEAST_VARIANCE = 1e-6


class StateDependentNoiseProjectionNetwork(network.DistributionNetwork):
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
            input_tensor_spec=None,
            state_spec=(),
            output_spec=_distribution_spec(sample_spec, scale_distribution),
            name=name,
        )
        self._set_untracked("_sample_spec", sample_spec)
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
    def call(
        self,
        inputs: tf.Tensor,
        outer_rank: int = 1,
        training: bool = False,
        mask: tf.Tensor | None = None,
    ) -> tuple[Any, tuple[()]]:
        """Returns the distribution, and no state.

        Args:
          inputs: The hidden state, `outer_shape + [n]`.
          outer_rank: The number of outer dimensions of `inputs`.
          training: Not used.
          mask: Must be None.

        Raises:
          ValueError: If the dtype of `inputs` is not the dtype of the actions.
          NotImplementedError: If `mask` is not None.
        """
        spec = self._sample_spec
        normal_projection_network.check_inputs(inputs, mask, spec, self)
        squash = utils.BatchSquash(outer_rank)
        hidden = squash.flatten(inputs)
        means = self._means_layer(hidden)
        features = hidden if self._learn_features else tf.stop_gradient(hidden)
        noise_std = tf.exp(tf.cast(tf.convert_to_tensor(self._log_std), spec.dtype))
        variance = tf.matmul(tf.square(features), tf.square(noise_std))
        loc, scale = (
            squash.unflatten(tf.cast(tf.reshape(x, [-1, *spec.shape]), spec.dtype))
            for x in (means, tf.sqrt(variance + _LEAST_VARIANCE))
        )
        distribution = self.output_spec.build_distribution(
            loc=loc,
            scale=scale,
            features=squash.unflatten(features),
            noise_std=noise_std,
        )
        return distribution, ()


def _distribution_spec(
    spec: Any, scale_distribution: bool
) -> distribution_spec.DistributionSpec:
    """Returns the distribution spec of a `StateDependentNormal`, squashed or not."""

    def build(
        loc: tf.Tensor, scale: tf.Tensor, features: Any = None, noise_std: Any = None
    ) -> Any:
        from tfrl.distributions import squash_to_spec, state_dependent_normal

        distribution = state_dependent_normal.StateDependentNormal(
            loc, scale, features, noise_std
        )
        if not scale_distribution:
            return distribution
        return squash_to_spec.SquashToSpecNormal(distribution, spec)

    parameter = tf.TensorSpec(spec.shape, spec.dtype)
    return distribution_spec.DistributionSpec(
        build, {"loc": parameter, "scale": parameter}, sample_spec=spec
    )
