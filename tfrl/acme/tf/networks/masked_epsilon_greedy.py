"""Epsilon-greedy choices among legal actions."""

from tfrl.networks.legal_actions import (
    NetworkWithMaskedEpsilonGreedy as NetworkWithMaskedEpsilonGreedy,
)
