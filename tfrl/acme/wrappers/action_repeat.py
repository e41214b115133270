"""Repeats actions."""

from tfrl.wrappers.action_repeat import ActionRepeatWrapper as ActionRepeatWrapper
