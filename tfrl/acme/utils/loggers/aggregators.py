"""Several loggers as one."""

from tfrl.loggers.filters import Dispatcher as Dispatcher
