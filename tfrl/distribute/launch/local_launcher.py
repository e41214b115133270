"""`LocalLauncher`: a run whose processes are children of this one."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from tfrl import train
from tfrl.distribute.launch import tokens
from tfrl.distribute.launch.plan import Plan
from tfrl.distribute.lockstep import lockstep_actor, lockstep_learner
from tfrl.distribute.process_roles import ACTOR, EVALUATOR, LEARNER, REPLAY, Task
from tfrl.distribute.roles import actor, devices, evaluator, learner
from tfrl.distribute.servers import replay_servers, supervised_server
from tfrl.system import function_process, supervisor, temporary_folders


class LocalLauncher:
    """Starts all processes on this host, as children of this one."""

    @contextlib.contextmanager
    def launch(self, plan: Plan) -> Iterator[list[supervisor.Member]]:
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
        servers = replay_servers.FixedServers(
            tuple(f"localhost:{server.port}" for server in started)
        )

        def start(task: Task, starts: int) -> supervisor.Process:
            if task.role == REPLAY:
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
                if task.role != LEARNER or task.number == 0
            ]


def work(
    task: Task, plan: Plan, servers: replay_servers.Servers, starts: int
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
    task: Task, plan: Plan, servers: replay_servers.Servers, starts: int
) -> function_process.Function:
    if task.role == ACTOR:
        return functools.partial(
            actor.act, plan.experiment, servers, task.number, starts
        )
    if task.role == EVALUATOR:
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
    return learn(*arguments, is_stopped, devices.mirrored(num_replicas))


def _work_in_lockstep(
    task: Task, plan: Plan, servers: replay_servers.Servers, starts: int
) -> function_process.Function:
    del starts  # A run in lockstep does not depend on it.
    address = servers.first
    if task.role == ACTOR:
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
