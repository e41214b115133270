"""The distribution of distributional critics, at Acme's path."""

from tfrl.distributions.discrete_valued import (
    DiscreteValuedDistribution as DiscreteValuedDistribution,
)
