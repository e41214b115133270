"""Loggers that leave something out."""

from tfrl.loggers.filters import GatedFilter as GatedFilter
from tfrl.loggers.filters import KeyFilter as KeyFilter
from tfrl.loggers.filters import NoneFilter as NoneFilter
from tfrl.loggers.filters import StepFilter as StepFilter
from tfrl.loggers.filters import TimeFilter as TimeFilter
