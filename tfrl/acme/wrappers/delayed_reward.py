"""Rewards that come late."""

from tfrl.wrappers.delayed_reward import DelayedRewardWrapper as DelayedRewardWrapper
