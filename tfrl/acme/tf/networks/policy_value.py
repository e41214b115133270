"""Logits of a policy and a value."""

from tfrl.networks.heads.policy_value import PolicyValueHead as PolicyValueHead
