"""Launchers, which start the processes of a run, and the one for this host.

A launcher says where processes run. Which of them are started again, and how often, is
the supervisor's business, for all launchers alike.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from tfrl import train
from tfrl.distribute import actor, learner, replicas, supervised_server, tasks
from tfrl.distribute import experiment as experiments
from tfrl.distribute import plan as plans
from tfrl.distribute import servers as servers_lib
from tfrl.system import function_process, supervisor


class Launcher(Protocol):
    """What `run_distributed` takes."""

    def launch(
        self, plan: plans.Plan
    ) -> contextlib.AbstractContextManager[Sequence[supervisor.Member]]:
        """Prepares a run; in this context, its members can be started.

        Args:
          plan: The run.

        Returns:
          A context of the members, in the order of their start. The last one is the
          learner; its process has a `result`.
        """


class LocalLauncher:
    """Starts all processes on this host, as children of this one."""

    @contextlib.contextmanager
    def launch(self, plan: plans.Plan) -> Iterator[list[supervisor.Member]]:
        """Starts the servers, and returns all members; see `Launcher`."""
        started = [
            supervised_server.SupervisedServer(
                functools.partial(supervised_server.make_server, made, directory)
            )
            for made, directory in zip(
                plan.tables, plan.server_directories, strict=True
            )
        ]
        servers = servers_lib.FixedServers(
            tuple(f"localhost:{server.port}" for server in started)
        )

        def start(task: tasks.Task, starts: int) -> supervisor.Process:
            if task.role == tasks.REPLAY:
                return started[task.number].start(starts)
            return function_process.FunctionProcess(
                work(task, plan, servers, starts), task.title
            )

        yield [
            supervisor.Member(task.title, functools.partial(start, task))
            for task in plan.tasks
            # One process has all replicas of the learner.
            if task.role != tasks.LEARNER or task.number == 0
        ]


def work(
    task: tasks.Task, plan: plans.Plan, servers: servers_lib.Servers, starts: int
) -> function_process.Function:
    """Returns what an actor or a learner does, for a `FunctionProcess`.

    Args:
      task: Which of them.
      plan: The run.
      servers: The replay servers.
      starts: How often the task was started before.
    """
    if task.role == tasks.ACTOR:
        return functools.partial(
            actor.act, plan.experiment, servers, task.number, starts
        )
    return functools.partial(
        _learn,
        plan.num_learners,
        plan.num_actors,
        plan.experiment,
        servers,
        plan.directory,
        plan.num_iterations,
    )


def _learn(
    num_replicas: int,
    num_actors: int,
    experiment: experiments.Experiment,
    servers: servers_lib.Servers,
    directory: train.RunDirectory,
    num_iterations: int,
    is_stopped: Callable[[], bool],
) -> train.RunResult:
    """Does the work of a learner with its replicas."""
    # Nothing else of TensorFlow may come before.
    strategy = replicas.mirrored(num_replicas)
    return learner.learn(
        experiment,
        servers,
        directory,
        num_iterations,
        is_stopped,
        strategy,
        num_actors=num_actors,
    )
