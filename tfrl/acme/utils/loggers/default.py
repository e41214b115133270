"""The logger of those who choose none."""

from tfrl.loggers.default import make_default_logger as make_default_logger
