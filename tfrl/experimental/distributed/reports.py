"""The earlier names of `tfrl.distribute.reports`."""

from tfrl.distribute.reports import DEFAULT_TABLE as DEFAULT_TABLE
from tfrl.distribute.reports import Collected as Collected
from tfrl.distribute.reports import Reporter as Reporter
from tfrl.distribute.reports import make_table as make_table

__all__ = ["DEFAULT_TABLE", "Collected", "Reporter", "make_table"]
