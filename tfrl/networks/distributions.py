"""The distribution of distributional critics, under the path that Acme gives it."""

from tfrl.distributions.discrete_valued import (
    DiscreteValuedDistribution as DiscreteValuedDistribution,
)
