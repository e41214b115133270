"""Moved to `tfrl.losses.aggregation`."""

from tfrl.utils.moved import moved

__getattr__ = moved("tfrl.utils.loss_aggregation", "tfrl.losses.aggregation")
