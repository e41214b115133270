"""The distribution of distributional critics."""

from tfrl.distributions.discrete_valued import (
    DiscreteValuedDistribution as DiscreteValuedDistribution,
)
