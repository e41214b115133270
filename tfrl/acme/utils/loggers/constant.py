"""Values added to each write."""

from tfrl.loggers.constant import ConstantLogger as ConstantLogger
