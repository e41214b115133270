"""Heads that return distributions."""

from typing import Any

from tfrl.acme.tf.networks.stochastic import ApproximateMode as ApproximateMode
from tfrl.networks.heads.distributional import CategoricalHead as CategoricalHead
from tfrl.networks.heads.distributional import DiscreteValuedHead as DiscreteValuedHead
from tfrl.networks.heads.distributional import (
    GaussianMixtureHead as GaussianMixtureHead,
)
from tfrl.networks.heads.distributional import (
    MultivariateGaussianMixture as MultivariateGaussianMixture,
)
from tfrl.networks.heads.distributional import (
    MultivariateNormalDiagHead as MultivariateNormalDiagHead,
)
from tfrl.networks.heads.distributional import (
    UnivariateGaussianMixture as UnivariateGaussianMixture,
)


def GaussianMixture(
    num_dimensions: int,
    num_components: int,
    multivariate: bool,
    init_scale: float | None = None,
    **kwargs: Any,
) -> UnivariateGaussianMixture | MultivariateGaussianMixture:
    """Returns a head of either kind.

    Args:
      num_dimensions: The number of dimensions of a sample.
      num_components: The number of components.
      multivariate: Whether it is one mixture of all dimensions, a
        `MultivariateGaussianMixture`, or one for each, a `UnivariateGaussianMixture`.
      init_scale: See these.
      **kwargs: Passed to `keras.layers.Layer`.
    """
    head = MultivariateGaussianMixture if multivariate else UnivariateGaussianMixture
    return head(num_dimensions, num_components, init_scale, **kwargs)
