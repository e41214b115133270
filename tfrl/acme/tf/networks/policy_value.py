"""Logits of a policy and a value."""

from tfrl.networks.policy_value import PolicyValueHead as PolicyValueHead
