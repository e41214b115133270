"""Epsilon-greedy choices among legal actions."""

from tfrl.acme.tf.networks.legal_actions import (
    NetworkWithMaskedEpsilonGreedy as NetworkWithMaskedEpsilonGreedy,
)
