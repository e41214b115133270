"""Launchers, which start the processes of a run, and the launcher for this host.

A launcher determines where processes run. With every launcher, the supervisor decides
which of them are started again, and how often.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from tfrl import train
from tfrl.distribute import (
    actor,
    devices,
    evaluator,
    learner,
    lockstep_actor,
    lockstep_learner,
    replicas,
    supervised_server,
    tasks,
    tokens,
)
from tfrl.distribute import plan as plans
from tfrl.distribute import servers as servers_lib
from tfrl.system import function_process, supervisor, temporary_folders


class Launcher(Protocol):
    """The interface of launchers, for `run_distributed`."""

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
        token = tokens.draw()
        make_server = functools.partial(supervised_server.make_server, token=token)
        started = [
            supervised_server.SupervisedServer(
                functools.partial(make_server, made, directory)
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
            function = work(task, plan, servers, starts)
            return function_process.FunctionProcess(
                functools.partial(
                    tokens.call_with, token, temporary_folders.used_by(function, folder)
                ),
                task.title,
            )

        with temporary_folders.make() as folder:
            yield [
                supervisor.Member(task.title, functools.partial(start, task))
                for task in plan.tasks
                # One process has all replicas of the learner.
                if task.role != tasks.LEARNER or task.number == 0
            ]


def work(
    task: tasks.Task, plan: plans.Plan, servers: servers_lib.Servers, starts: int
) -> function_process.Function:
    """Returns the work of an actor, evaluator or learner, for a `FunctionProcess`.

    Args:
      task: The task of the process.
      plan: The run.
      servers: The replay servers.
      starts: The number of earlier starts of the task.
    """
    does = _work_in_lockstep if plan.is_lockstep else _work
    device = plan.experiment.device_of(task.role)
    return functools.partial(devices.call_on, device, does(task, plan, servers, starts))


def _work(
    task: tasks.Task, plan: plans.Plan, servers: servers_lib.Servers, starts: int
) -> function_process.Function:
    if task.role == tasks.ACTOR:
        return functools.partial(
            actor.act, plan.experiment, servers, task.number, starts
        )
    if task.role == tasks.EVALUATOR:
        return functools.partial(evaluator.evaluate, plan.experiment, servers)
    learn = functools.partial(
        learner.learn,
        num_actors=plan.num_actors,
        has_evaluator=plan.has_evaluator,
    )
    arguments = plan.experiment, servers, plan.directory, plan.num_iterations
    return functools.partial(_learn, learn, plan.num_learners, arguments)


def _learn(
    learn: Callable[..., train.RunResult],
    num_replicas: int,
    arguments: tuple[Any, ...],
    is_stopped: Callable[[], bool],
) -> train.RunResult:
    """Does the work of a learner with its replicas."""
    # This must precede all other uses of TensorFlow.
    return learn(*arguments, is_stopped, replicas.mirrored(num_replicas))


def _work_in_lockstep(
    task: tasks.Task, plan: plans.Plan, servers: servers_lib.Servers, starts: int
) -> function_process.Function:
    del starts  # A run in lockstep does not depend on it.
    address = servers.first
    if task.role == tasks.ACTOR:
        return functools.partial(
            lockstep_actor.act, plan.experiment, address, task.number, plan.num_actors
        )
    return functools.partial(
        lockstep_learner.learn,
        plan.experiment,
        address,
        plan.directory,
        plan.num_iterations,
        plan.num_actors,
    )
