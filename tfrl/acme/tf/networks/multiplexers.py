"""Joins observations and actions for a critic."""

from tfrl.networks.layers.continuous import CriticMultiplexer as CriticMultiplexer
