"""Values added to each write."""

from tfrl.loggers.filters import ConstantLogger as ConstantLogger
