"""`LocalLauncher`: a run whose processes are children of this one."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tfrl import train
from tfrl.distribute import replay_servers
from tfrl.distribute.coordination import remote_work
from tfrl.distribute.launch.plan import Plan, draw_token
from tfrl.distribute.process_roles import LEARNER, REPLAY, Task
from tfrl.distribute.roles import devices
from tfrl.replay_service.transport import connection
from tfrl.system import child_process, locked_directories, supervisor

_Result = TypeVar("_Result")


class LocalLauncher:
    """Starts all processes on this host, as children of this one."""

    @contextlib.contextmanager
    def launch(self, plan: Plan) -> Iterator[list[supervisor.Member]]:
        """Starts the servers, and returns all members; see `Launcher`."""
        token = draw_token()
        make_server = functools.partial(replay_servers.make_server, token=token)
        started = [
            replay_servers.SupervisedServer(
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
            return child_process.FunctionProcess(
                functools.partial(
                    _prepare_and_call, token, folder, work, task, plan, servers, starts
                ),
                task.title,
            )

        with locked_directories.temporary() as folder:
            yield [
                supervisor.Member(task.title, functools.partial(start, task))
                for task in plan.tasks
                # One process has all replicas of the learner.
                if task.role != LEARNER or task.number == 0
            ]


def _prepare_and_call(
    token: str, folder: str, function: Callable[..., _Result], *arguments: Any
) -> _Result:
    """Gives a child process its token and its folder, and calls its function.

    The child gets the token with its function, over a socket that it shares only with
    its parent. So the token is neither on the command line, which `/proc` shows, nor in
    the environment, which `/proc` shows and further children inherit.

    Args:
      token: The token of the run.
      folder: The folder of the process's temporary files.
      function: The function.
      *arguments: Its arguments.
    """
    connection.set_default_token(token)
    locked_directories.use_temporary(folder)
    return function(*arguments)


def work(
    task: Task,
    plan: Plan,
    servers: replay_servers.Servers,
    starts: int,
    is_stopped: Callable[[], bool],
) -> train.RunResult | None:
    """Does the work of a task as a child of the launcher; see `remote_work.do_task`.

    Args:
      task: The task of the process.
      plan: The run.
      servers: The replay servers.
      starts: The number of earlier starts of the task.
      is_stopped: Returns whether to stop.
    """
    return remote_work.do_task(
        task,
        plan.experiment,
        servers,
        starts,
        is_stopped,
        plan.settings,
        lambda: plan.directory,
        lambda: devices.mirrored(plan.num_learners),
    )
