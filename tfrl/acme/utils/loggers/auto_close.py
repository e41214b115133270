"""Loggers that close themselves."""

from tfrl.loggers.filters import AutoCloseLogger as AutoCloseLogger
