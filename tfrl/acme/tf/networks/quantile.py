"""Implicit quantiles."""

from tfrl.networks.quantile import IQNHead as IQNHead
