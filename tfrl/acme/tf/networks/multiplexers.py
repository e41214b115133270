"""Joins observations and actions for a critic."""

from tfrl.networks.multiplexers import CriticMultiplexer as CriticMultiplexer
