"""Quantile regression."""

from tfrl.losses.quantile_regression import quantile as quantile
