"""Moved to `tfrl.losses.discounting`."""

from tfrl.utils.moved import moved

__getattr__ = moved("tfrl.utils.discounting", "tfrl.losses.discounting")
