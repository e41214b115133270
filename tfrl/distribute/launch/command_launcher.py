"""`CommandLauncher`: a run whose processes Slurm, Kubernetes or a person starts."""

from __future__ import annotations

import contextlib
import functools
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tfrl.distribute.coordination import remote_process
from tfrl.distribute.coordination.coordinator import Coordinator
from tfrl.distribute.launch.plan import Plan
from tfrl.distribute.process_roles import Task
from tfrl.replay_service.transport import addresses, connection
from tfrl.system import log, supervisor


class CommandLauncher:
    """Prints a command for each process of a run, and waits for these processes.

    The calling process is the coordinator: it knows the living processes, and the
    address of the replay server. When a process ends with a status other than 0,
    whatever started it (Slurm, Kubernetes or a person) starts it again.

    All processes, including this one, have the same TFRL_REPLAY_TOKEN in their
    environment. Nobody else should be able to read it.

    Every host has the run's directory at the same path. At the least, the learner and
    the server, which write to it, must find their files there when they are started
    again.
    """

    def __init__(
        self,
        experiment: str,
        settings: Mapping[str, Any] | None = None,
        *,
        host: str = "localhost",
        port: int | None = None,
        patience: float = 3600.0,
        silence: float = 30.0,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """Stores the settings.

        Args:
          experiment: The function that makes the experiment in each process, as
            "package.module:function".
          settings: Its keyword arguments, valid in JSON.
          host: The address of this host for the others.
          port: The port of the coordinator; None for any free one.
          patience: The number of seconds within which a process has to appear.
          silence: The number of seconds without a message after which a process counts
            as dead.
          say: Takes the commands, and a line for each process that appears; `log.info`
            if None.

        Raises:
          ValueError: `experiment` has another form, or a number of seconds is not
            positive.
          ImportError: The module cannot be imported.
          AttributeError: The module has no such function.
        """
        from tfrl.distribute.coordination import remote_work

        remote_work.load(experiment)
        self._experiment = experiment
        self._settings = dict(settings or {})
        self._host = host
        self._port = port
        self._watch = remote_process.Watch(patience, silence, say or log.info)

    @contextlib.contextmanager
    def launch(self, plan: Plan) -> Iterator[list[supervisor.Member]]:
        """Starts the coordinator and tells the commands; see `Launcher`.

        Raises:
          ValueError: The run is in lockstep, or the environment has no token.
        """
        if plan.is_lockstep:
            raise ValueError(
                "schedule: got 'lockstep' with a CommandLauncher, expected 'free', "
                "because lockstep starts all processes again when one has ended, and "
                "this launcher starts none; take a LocalLauncher or a RayLauncher."
            )
        if connection.default_token() is None:
            # If it were printed with the commands, it would be in logs, and in lists of
            # processes.
            raise ValueError(
                f"{connection.TOKEN_VARIABLE}: got none, expected the run's token in "
                "the environment of this process and of all workers, because any user "
                "of this host could take part without one; set it for all of them, "
                f"as by export {connection.TOKEN_VARIABLE}=$(openssl rand -hex 32)."
            )
        coordinator = Coordinator(
            {"settings": self._settings, **plan.shared_settings},
            host=self._host,
            port=self._port,
        )
        address = addresses.join(self._host, coordinator.port)
        self._watch.say("\n".join(self.command(task, address) for task in plan.tasks))
        yield [
            coordinator.member,
            *(
                supervisor.Member(
                    task.title,
                    functools.partial(self._expect, coordinator, task),
                    again="It is expected again",
                )
                for task in plan.tasks
            ),
        ]

    def command(self, task: Task, coordinator: str) -> str:
        """Returns the command that starts a process.

        Args:
          task: The process's task.
          coordinator: The address of the coordinator, "host:port".
        """
        return shlex.join(
            [
                "python",
                "-m",
                "tfrl.distribute.worker",
                f"--role={task.role}",
                f"--index={task.number}",
                f"--experiment={self._experiment}",
                f"--coordinator={coordinator}",
            ]
        )

    def _expect(
        self, coordinator: Coordinator, task: Task, starts: int
    ) -> supervisor.Process:
        del starts  # The coordinator counts the processes of a task.
        return remote_process.RemoteProcess(
            coordinator,
            task,
            self._watch,
        )
