"""Logits of a policy and a value."""

from tfrl.networks.heads.value_head import PolicyValueHead as PolicyValueHead
