"""Heads that return distributions."""

from tfrl.acme.tf.networks.stochastic import ApproximateMode as ApproximateMode
from tfrl.networks.distributional import CategoricalHead as CategoricalHead
from tfrl.networks.distributional import DiscreteValuedHead as DiscreteValuedHead
from tfrl.networks.distributional import GaussianMixtureHead as GaussianMixtureHead
from tfrl.networks.distributional import (
    MultivariateGaussianMixture as MultivariateGaussianMixture,
)
from tfrl.networks.distributional import (
    MultivariateNormalDiagHead as MultivariateNormalDiagHead,
)
from tfrl.networks.distributional import (
    UnivariateGaussianMixture as UnivariateGaussianMixture,
)
