"""The action values of discrete BCQ."""

from tfrl.networks.discrete import DiscreteFilteredQNetwork as DiscreteFilteredQNetwork
