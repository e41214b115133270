"""The work of one process of a run on several hosts.

The process joins the run of a coordinator, and joins again if it loses a replay server.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pathlib
import socket
import time
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tfrl import replay_service
from tfrl.distribute import replay_servers
from tfrl.distribute.coordination import coordinator_client, learner_group
from tfrl.distribute.process_roles import ACTOR, EVALUATOR, LEARNER, REPLAY, Task
from tfrl.replay_service.transport import addresses
from tfrl.system import log

if TYPE_CHECKING:
    import tensorflow as tf

    from tfrl import train
    from tfrl.distribute.experiment import Experiment

_PAUSE = 1.0  # Seconds before a worker joins again.
_POLL = 0.1  # Seconds between looks at a server.
# The modules that are being imported for their experiment.
_importing: list[str] = []


def work(
    task: Task,
    coordinator: str,
    make_experiment: Callable[..., Experiment],
    *,
    host: str | None = None,
    patience: float = 60.0,
) -> int:
    """Does the work of a task until the run ends; returns the exit status.

    Args:
      task: The task.
      coordinator: The coordinator's address, "host:port".
      make_experiment: Makes the experiment from the run's settings.
      host: The address of this host for the others; None determines it.
      patience: The number of seconds to keep trying to reach the coordinator.

    Raises:
      ReplayUnavailable: No coordinator answers at first.
      Exception: An error of the work.
    """
    host = host or _own_host(coordinator)
    while True:
        member = coordinator_client.CoordinatorClient(
            coordinator, task, patience=patience
        )
        try:
            result = _work(member, make_experiment, host)
        except replay_service.ReverbError as error:
            member.leave(error=traceback.format_exc(), lost=str(error))
            log.info(f"{task.title}: {error} It joins again.")
            time.sleep(_PAUSE)
            continue
        except BaseException:
            member.leave(error=traceback.format_exc(), lost=None)
            raise
        member.leave(result=result)
        if member.stopped_by:
            log.info(f"{task.title}: {member.stopped_by}.")
        return 1 if member.has_lost_coordinator else 0


def load(experiment: str) -> Callable[..., Experiment]:
    """Imports the function that makes an experiment.

    Args:
      experiment: The function, as "package.module:function".

    Raises:
      ValueError: It has another form.
      ImportError: The module cannot be imported.
      AttributeError: The module has no such name.
    """
    module, colon, function = experiment.partition(":")
    if not (module and colon and function):
        raise ValueError(
            f"experiment: got {experiment!r}, expected 'package.module:function', such "
            "as 'my_project.training:make_experiment'."
        )
    _importing.append(module)
    try:
        return getattr(importlib.import_module(module), function)
    finally:
        _importing.pop()


def check_no_import() -> None:
    """Raises a RuntimeError while the module of an experiment is imported.

    Every process of a run imports this module, and none of them may begin the run.
    """
    if _importing:
        raise RuntimeError(
            f"run_distributed: got a call while {_importing[-1]!r} is imported for its "
            "experiment, expected none, because every worker imports this module; put "
            "the call under `if __name__ == '__main__':`, or into another file."
        )


def _work(
    member: coordinator_client.CoordinatorClient,
    make_experiment: Callable[..., Experiment],
    host: str,
) -> Any:
    """Does the work of a task until it ends; returns its result, valid in JSON."""
    if member.task.role == REPLAY:
        return _serve(member, host)
    servers = BoardServers(member)
    if not servers.wait():
        return None

    def is_stopped() -> bool:
        return bool(member.stopped_by) or servers.has_moved()

    work = functools.partial(_train, member, make_experiment, servers, is_stopped)
    if member.task.role == LEARNER and member.run["num_learners"] > 1:
        result = learner_group.train(member, host, work)
    else:
        result = work(None)
    if not member.stopped_by and servers.has_moved():
        raise replay_service.errors.ReplayUnavailable(
            f"The replay server at {servers.first} is at {servers.addresses()[0]} now."
        )
    return result


def _train(
    member: coordinator_client.CoordinatorClient,
    make_experiment: Callable[..., Experiment],
    servers: replay_servers.Servers,
    is_stopped: Callable[[], bool],
    strategy: tf.distribute.Strategy | None,
) -> Any:
    """Does the work of an actor, the evaluator or the learner."""
    from tfrl import train

    result = do_task(
        member.task,
        make_experiment(**member.run["settings"]),
        servers,
        member.number,
        is_stopped,
        member.run,
        lambda: train.RunDirectory(**member.run["directory"]),
        lambda: strategy,
    )
    return result and dataclasses.asdict(result)


def do_task(
    task: Task,
    experiment: Experiment,
    servers: replay_servers.Servers,
    starts: int,
    is_stopped: Callable[[], bool],
    run: Mapping[str, Any],
    make_directory: Callable[[], train.RunDirectory],
    make_strategy: Callable[[], tf.distribute.Strategy | None],
) -> train.RunResult | None:
    """Does the work of an actor, evaluator or learner; returns a learner's result.

    Args:
      task: The task of this process.
      experiment: The run's experiment.
      servers: The replay servers.
      starts: The number of earlier starts of the task.
      is_stopped: Returns whether to stop.
      run: The `Plan.settings` of the run.
      make_directory: Makes the directory of a learner's outputs.
      make_strategy: Makes the strategy of a learner; None for one replica.
    """
    from tfrl.distribute.lockstep import lockstep_roles, rounds
    from tfrl.distribute.roles import actor, devices, evaluator, learner

    # This must precede all other uses of TensorFlow, also by strategies.
    devices.limit_to(experiment.device_of(task.role))
    is_in_lockstep = run["schedule"] == rounds.LOCKSTEP
    num_iterations, num_actors = run["num_iterations"], run["num_actors"]
    if task.role == ACTOR and is_in_lockstep:
        lockstep_roles.act(
            experiment, servers.first, task.number, num_actors, is_stopped
        )
    elif task.role == ACTOR:
        actor.act(experiment, servers, task.number, starts, is_stopped)
    elif task.role == EVALUATOR:
        evaluator.evaluate(experiment, servers, is_stopped)
    elif is_in_lockstep:
        return lockstep_roles.learn(
            experiment,
            servers.first,
            make_directory(),
            num_iterations,
            num_actors,
            is_stopped,
        )
    elif (strategy := make_strategy()) is not None and task.number:
        learner.follow(experiment, servers, strategy)
    else:
        return learner.learn(
            experiment,
            servers,
            make_directory(),
            num_iterations,
            is_stopped,
            strategy,
            num_actors=num_actors,
            has_evaluator=run["has_evaluator"],
        )
    return None


def _serve(member: coordinator_client.CoordinatorClient, host: str) -> None:
    """Runs the replay server until the run ends.

    Raises:
      ReplayUnavailable: The server has died.
    """
    run, number = member.run, member.task.number
    make_server = functools.partial(
        replay_servers.make_server,
        [replay_service.Table.from_config(table) for table in run["tables"][number]],
        pathlib.Path(run["server_directories"][number]),
        host=host,
    )
    server = _start(make_server, host, member.last_address)
    try:
        member.announce(addresses.join(host, server.port))
        while not member.stopped_by:
            how = server.how_it_died()
            if how is not None:
                raise replay_service.errors.ReplayUnavailable(f"The server {how}.")
            time.sleep(_POLL)
    finally:
        server.stop()


def _start(
    make_server: Callable[[int | None], replay_service.Server],
    host: str,
    last_address: str | None,
) -> replay_service.Server:
    """Starts a server at its last address, or else at another one."""
    before, _, port = (last_address or "").rpartition(":")
    if before == host:
        try:
            return make_server(int(port))
        except OSError:
            pass  # Another program has the port now.
    return make_server(None)


def _own_host(coordinator: str) -> str:
    """Returns the address of this host for a connection to the coordinator."""
    host, _, port = coordinator.rpartition(":")
    family, kind, _, _, address = socket.getaddrinfo(
        host.strip("[]"), int(port), type=socket.SOCK_DGRAM
    )[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)  # A socket of this kind sends nothing when it connects.
        return str(probe.getsockname()[0])


class BoardServers:
    """Servers whose current addresses are on the coordinator's board.

    Attributes:
      first: The address of shard 0 when this was made.
    """

    def __init__(self, member: coordinator_client.CoordinatorClient) -> None:
        """Stores the arguments.

        Args:
          member: This process's connection to the coordinator.
        """
        self._member = member
        count = len(member.run["tables"])
        self._tasks = [Task(REPLAY, number) for number in range(count)]
        self.first = ""

    def wait(self) -> bool:
        """Waits until all servers have an address; False if this process must stop."""
        for task in self._tasks:
            if self._member.wait_for_address_of(task) is None:
                return False
        self.first = self.addresses()[0]
        return True

    def has_moved(self) -> bool:
        """Whether shard 0 has another address since `wait`."""
        return self.addresses()[0] != self.first

    def addresses(self) -> list[str]:
        """Returns the newest address of each shard."""
        return [self._member.address_of(task) or "" for task in self._tasks]
