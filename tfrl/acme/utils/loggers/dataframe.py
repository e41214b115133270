"""Logging to memory."""

from tfrl.loggers.in_memory import InMemoryLogger as InMemoryLogger
