"""Joins observations and actions for a critic."""

from tfrl import absent
from tfrl.networks.layers.continuous import CriticMultiplexer as CriticMultiplexer

__getattr__, __path__ = absent.explained(__name__)
