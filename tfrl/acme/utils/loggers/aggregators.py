"""Several loggers as one."""

from tfrl.loggers.aggregators import Dispatcher as Dispatcher
