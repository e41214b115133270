"""Transformed distributions with a mode, such as a normal squashed into a spec."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from typing_extensions import override

from tfrl.distributions import tanh_bijector_stable
from tfrl.utils import actions


class SquashToSpecNormal(tfp.distributions.Distribution):
    """The distribution of `mean + magnitude * tanh(x)` with `x` normal.

    `mean` is the middle and `magnitude` half the width of the spec's bounds. The KL
    divergence of two such distributions with the same spec equals the KL divergence of
    their normal distributions, since the map is invertible. As approximations, `mode()`
    and `mean()` return the squashed mode of the normal, and `stddev()` is `magnitude *
    tanh(stddev)`.
    """

    def __init__(
        self,
        distribution: Any,
        spec: Any,
        validate_args: bool = False,
        name: str = "SquashToSpecNormal",
    ):
        """Creates the distribution.

        Args:
          distribution: A `Normal` or `MultivariateNormalDiag`.
          spec: The bounded spec of the actions.
          validate_args: As in TFP.
          name: The distribution's name.

        Raises:
          ValueError: If `distribution` is another distribution.
        """
        parameters = dict(locals())
        normals = (tfp.distributions.Normal, tfp.distributions.MultivariateNormalDiag)
        if not isinstance(distribution, normals):
            raise ValueError(
                f"distribution: got {distribution}, expected Normal or "
                "MultivariateNormalDiag: Input distribution must be a normal "
                "distribution; scale others with a bijector."
            )
        means, magnitudes = actions.spec_means_and_magnitudes(spec)
        self.action_means, self.action_magnitudes = means, magnitudes
        self._distribution = distribution
        self._squashed = tfp.distributions.TransformedDistribution(
            distribution,
            tfp.bijectors.Chain(
                [
                    tfp.bijectors.Shift(tf.cast(means, distribution.dtype)),
                    tfp.bijectors.Scale(tf.cast(magnitudes, distribution.dtype)),
                    tanh_bijector_stable.Tanh(),
                ]
            ),
        )
        super().__init__(
            dtype=distribution.dtype,
            reparameterization_type=distribution.reparameterization_type,
            validate_args=validate_args,
            allow_nan_stats=distribution.allow_nan_stats,
            parameters=parameters,
            name=name,
        )

    @property
    def input_distribution(self) -> Any:
        """The normal distribution before the squashing."""
        return self._distribution

    def kl_divergence(self, other: Any, name: str = "kl_divergence") -> tf.Tensor:
        """Returns the KL divergence to `other`, which must have the same spec.

        Raises:
          ValueError: If `other` has another spec or class.
        """
        if not isinstance(other, SquashToSpecNormal):
            raise ValueError(
                f"other: got {other}, but other distribution should be of type "
                "SquashToSpecNormal; squash it to the same spec."
            )
        if np.any(self.action_means != other.action_means) or np.any(
            self.action_magnitudes != other.action_magnitudes
        ):
            raise ValueError(
                f"other: got mean {other.action_means} and magnitude "
                f"{other.action_magnitudes}, expected {self.action_means} and "
                f"{self.action_magnitudes}: Other distribution does not have same "
                "action mean and magnitude; squash it to the same spec."
            )
        return self._distribution.kl_divergence(other.input_distribution, name)

    @classmethod
    @override
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> Any:
        return {"distribution": tfp.util.BatchedComponentProperties()}

    def _event_shape(self) -> tf.TensorShape:
        return self._distribution.event_shape

    def _event_shape_tensor(self) -> tf.Tensor:
        return self._distribution.event_shape_tensor()

    def _sample_n(self, n: Any, seed: Any = None) -> tf.Tensor:
        return self._squashed.sample(n, seed=seed)

    def _log_prob(self, value: tf.Tensor) -> tf.Tensor:
        return self._squashed.log_prob(value)

    def _mode(self) -> tf.Tensor:
        squashed = tf.tanh(self._distribution.mode())
        return self.action_means + self.action_magnitudes * squashed

    def _mean(self) -> tf.Tensor:
        return self._mode()

    def _stddev(self) -> tf.Tensor:
        return self.action_magnitudes * tf.tanh(self._distribution.stddev())


class ApproximateModeDistribution(tfp.distributions.TransformedDistribution):
    """A `TransformedDistribution` whose `mode()` is the transformed mode.

    TFP has no mode for transformations such as `tanh`, because the transformed mode is
    not the point of the largest density.
    """

    def __init__(
        self,
        distribution: Any,
        bijector: Any,
        name: str = "ApproximateModeDistribution",
    ):
        """Creates the distribution.

        Args:
          distribution: The distribution to transform.
          bijector: The transformation.
          name: The distribution's name.
        """
        parameters = dict(locals())
        super().__init__(distribution, bijector, name=name)
        self._parameters = parameters

    def _mode(self) -> tf.Tensor:
        return self.bijector.forward(self.distribution.mode())
