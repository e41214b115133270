"""Recurrent networks."""

from tfrl.networks.sequential import DeepRNN as DeepRNN
from tfrl.networks.sequential import Sequential as Sequential
