"""Logging to the terminal."""

from tfrl.loggers.terminal import TerminalLogger as TerminalLogger
from tfrl.loggers.terminal import serialize as serialize
