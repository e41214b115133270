"""`Plan`, the run that a launcher starts, and `Launcher`, the interface of launchers.

A launcher determines where processes run. With every launcher, the supervisor decides
which of them are started again, and how often.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pathlib
import secrets
from collections.abc import Sequence
from typing import Any, Protocol

from tfrl import replay_service, train
from tfrl.distribute.experiment import Experiment
from tfrl.distribute.lockstep import rounds
from tfrl.distribute.process_roles import ACTOR, EVALUATOR, LEARNER, REPLAY, Task
from tfrl.distribute.roles import run_tables
from tfrl.replay_service.transport import connection
from tfrl.system import supervisor
from tfrl.utils import number_checks


@dataclasses.dataclass(frozen=True)
class Plan:
    """A run with actors.

    Attributes:
      experiment: The work of the run's processes.
      directory: The directory of the run's outputs.
      num_actors: The number of actors.
      num_iterations: The total number of updates; in lockstep, of rounds.
      num_shards: The number of replay servers.
      num_learners: The number of replicas of the learner.
      schedule: "free" or "lockstep"; see `run_distributed`.
      has_evaluator: Whether a separate process evaluates.
    """

    experiment: Experiment
    directory: train.RunDirectory
    num_actors: int
    num_iterations: int
    num_shards: int = 1
    num_learners: int = 1
    schedule: str = rounds.FREE
    has_evaluator: bool = False

    def __post_init__(self) -> None:
        number_checks.check_sizes(
            num_actors=self.num_actors,
            num_iterations=self.num_iterations,
            num_shards=self.num_shards,
            num_learners=self.num_learners,
        )
        self.experiment.check()
        batch_size = self.experiment.batch_size
        if batch_size % self.num_learners:
            raise ValueError(
                f"num_learners: got {self.num_learners} for a batch_size of "
                f"{batch_size}, expected a divisor, since each learner has the same "
                "part of a batch; change one of them."
            )
        if self.experiment.device and self.num_learners > 1:
            raise ValueError(
                f"device: got {self.experiment.device!r} with {self.num_learners} "
                "learners, expected '', because each of them has its own device; "
                "leave it out of the Experiment."
            )
        if self.num_actors < self.num_shards:
            raise ValueError(
                f"num_shards: got {self.num_shards} with {self.num_actors} actors, "
                "expected at most one shard for each actor, since an actor writes to "
                "one of them; start more actors, or fewer and larger shards."
            )
        if self.schedule not in rounds.SCHEDULES:
            raise ValueError(
                f"schedule: got {self.schedule!r}, expected one of "
                f"{list(rounds.SCHEDULES)}."
            )
        if self.is_lockstep:
            rounds.check_processes(
                self.num_shards, self.num_learners, self.has_evaluator
            )
        if self.num_shards > 1:
            _ = self.tables  # So its errors are raised before any process starts.

    def __getstate__(self) -> dict[str, Any]:
        """Returns the part of a plan that processes need: the arguments, no tables."""
        return {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self)
        }

    @property
    def is_lockstep(self) -> bool:
        """Whether actors and learner take turns."""
        return self.schedule == rounds.LOCKSTEP

    @functools.cached_property
    def tables(self) -> list[list[replay_service.Table]]:
        """The tables of each replay server."""
        if self.is_lockstep:
            return [rounds.make_tables(self.experiment, self.num_actors)]
        return run_tables.make_shards(self.experiment, self.num_shards)

    @property
    def server_directories(self) -> list[pathlib.Path]:
        """The directory of each replay server's checkpoints."""
        root = self.directory.replay_server.absolute()
        if self.num_shards == 1:
            return [root]
        return [root / f"shard_{number}" for number in range(self.num_shards)]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run that its processes need."""
        return {
            "num_iterations": self.num_iterations,
            "num_actors": self.num_actors,
            "has_evaluator": self.has_evaluator,
            "num_learners": self.num_learners,
            "schedule": self.schedule,
        }

    @property
    def shared_settings(self) -> dict[str, Any]:
        """The settings that a coordinator sends to all workers, valid in JSON."""
        return {
            "directory": self.directory.arguments,
            "server_directories": [str(path) for path in self.server_directories],
            **self.settings,
            "tables": [[table.to_config() for table in shard] for shard in self.tables],
        }

    @property
    def tasks(self) -> list[Task]:
        """The tasks of all processes, in the order in which they start.

        The learner of number 0, the chief, is the last.
        """
        servers = [Task(REPLAY, n) for n in range(self.num_shards)]
        actors = [Task(ACTOR, n) for n in range(self.num_actors)]
        learners = [Task(LEARNER, n) for n in range(self.num_learners)]
        evaluators = [Task(EVALUATOR)] * self.has_evaluator
        return [*servers, *actors, *evaluators, *reversed(learners)]


class Launcher(Protocol):
    """The interface of launchers, for `run_distributed`."""

    def launch(
        self, plan: Plan
    ) -> contextlib.AbstractContextManager[Sequence[supervisor.Member]]:
        """Prepares a run; in this context, its members can be started.

        Args:
          plan: The run.

        Returns:
          A context of the members, in the order of their start. The last one is the
          learner; its process has a `result`.
        """


def draw_token() -> str:
    """Returns the token of a run: from the environment, or else a new one.

    The servers of the run require it, and its processes know it.
    """
    return connection.default_token() or secrets.token_hex(32)
