"""What a logger is."""

from tfrl.loggers.base import Logger as Logger
from tfrl.loggers.base import LoggingData as LoggingData
from tfrl.loggers.base import NoOpLogger as NoOpLogger
from tfrl.loggers.base import to_numpy as to_numpy
