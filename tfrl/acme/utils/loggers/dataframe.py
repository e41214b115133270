"""Logging to memory."""

from tfrl.loggers.base import InMemoryLogger as InMemoryLogger
