"""Loggers that close themselves."""

from tfrl.loggers.auto_close import AutoCloseLogger as AutoCloseLogger
