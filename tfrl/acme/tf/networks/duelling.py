"""Dueling heads."""

from tfrl.networks.duelling import DuellingMLP as DuellingMLP
