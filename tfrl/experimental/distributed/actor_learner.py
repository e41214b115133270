"""The earlier names of functions of `tfrl.distribute`."""

from tfrl.distribute.actor import act as act
from tfrl.distribute.experiment import Experiment as Experiment
from tfrl.distribute.learner import learn as learn
from tfrl.distribute.run import run_distributed as run
from tfrl.distribute.tables import make_tables as make_tables

__all__ = ["Experiment", "act", "learn", "make_tables", "run"]
