"""The default logger."""

from tfrl.loggers.default import make_default_logger as make_default_logger
