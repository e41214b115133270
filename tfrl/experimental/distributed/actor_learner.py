"""The earlier names of functions of `tfrl.distribute`."""

from tfrl.distribute.experiment import Experiment as Experiment
from tfrl.distribute.roles.actor import act as act
from tfrl.distribute.roles.learner import learn as learn
from tfrl.distribute.roles.run_tables import make_tables as make_tables
from tfrl.distribute.run import run_distributed as run

__all__ = ["Experiment", "act", "learn", "make_tables", "run"]
