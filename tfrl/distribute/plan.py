"""`Plan`: the run that a launcher starts."""

from __future__ import annotations

import dataclasses
from typing import Any

from tfrl import train
from tfrl.distribute import experiment as experiments
from tfrl.distribute import tables, tasks
from tfrl.utils import number_checks


@dataclasses.dataclass(frozen=True)
class Plan:
    """A run with actors.

    Attributes:
      experiment: What its processes do.
      directory: The directory of its outputs.
      num_actors: The number of actors.
      num_iterations: The number of updates in all.
    """

    experiment: experiments.Experiment
    directory: train.RunDirectory
    num_actors: int
    num_iterations: int

    def __post_init__(self) -> None:
        number_checks.check_sizes(
            num_actors=self.num_actors, num_iterations=self.num_iterations
        )
        self.experiment.check()

    @property
    def shared_settings(self) -> dict[str, Any]:
        """What a coordinator tells all workers, valid in JSON."""
        made = tables.make_tables(self.experiment)
        return {
            "directory": self.directory.arguments,
            "server_directory": str(self.directory.replay_server.absolute()),
            "num_iterations": self.num_iterations,
            "tables": [table.to_config() for table in made],
        }

    @property
    def tasks(self) -> list[tasks.Task]:
        """The parts of all processes, in the order in which they start."""
        actors = [tasks.Task(tasks.ACTOR, n) for n in range(self.num_actors)]
        return [tasks.Task(tasks.REPLAY), *actors, tasks.Task(tasks.LEARNER)]
