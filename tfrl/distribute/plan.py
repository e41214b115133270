"""`Plan`: the run that a launcher starts, and `Task`: the part of one process."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from tfrl import train
from tfrl.distribute import experiment as experiments
from tfrl.utils import number_checks

REPLAY, ACTOR, LEARNER = ROLES = ("replay", "actor", "learner")


class Task(NamedTuple):
    """The part of a run that one process has.

    Attributes:
      role: "replay", "actor" or "learner".
      index: Its number among the processes of this role, from 0.
    """

    role: str
    index: int = 0

    @property
    def title(self) -> str:
        """Its name in messages."""
        if self.role == ACTOR:
            return f"actor {self.index}"
        return "the learner" if self.role == LEARNER else "the replay server"


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
    def tasks(self) -> list[Task]:
        """The parts of all processes, in the order in which they start."""
        actors = [Task(ACTOR, index) for index in range(self.num_actors)]
        return [Task(REPLAY), *actors, Task(LEARNER)]
