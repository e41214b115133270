"""Logging in another thread."""

from tfrl.loggers.asynchronous import AsyncLogger as AsyncLogger
