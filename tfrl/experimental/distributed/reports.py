"""The earlier names of `tfrl.distribute.roles.reports`."""

from tfrl.distribute.roles.reports import DEFAULT_TABLE as DEFAULT_TABLE
from tfrl.distribute.roles.reports import Collected as Collected
from tfrl.distribute.roles.reports import Reporter as Reporter
from tfrl.distribute.roles.reports import make_table as make_table

__all__ = ["DEFAULT_TABLE", "Collected", "Reporter", "make_table"]
