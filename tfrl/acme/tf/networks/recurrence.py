"""Recurrent networks."""

from tfrl.networks.sequential import Sequential as Sequential

DeepRNN = Sequential
