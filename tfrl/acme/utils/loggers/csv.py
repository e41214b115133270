"""Logging to CSV files."""

from tfrl.loggers.csv import CSVLogger as CSVLogger
