"""Layers that turn distributions into actions."""

from tfrl.networks.stochastic import ExpQWeightedPolicy as ExpQWeightedPolicy
from tfrl.networks.stochastic import StochasticMeanHead as StochasticMeanHead
from tfrl.networks.stochastic import StochasticModeHead as StochasticModeHead
from tfrl.networks.stochastic import StochasticSamplingHead as StochasticSamplingHead
