"""Logging to TensorBoard."""

from tfrl.loggers.tf_summary import TFSummaryLogger as TFSummaryLogger
