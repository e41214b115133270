"""The command of one process of a run on several hosts.

    python -m tfrl.distribute.worker --role=actor --index=0
        --experiment=package.module:function --coordinator=host:port

A `CommandLauncher` prints these commands; Slurm, Kubernetes or a person starts them.
The experiment is imported, never received: `function` takes the run's settings, which
come from the coordinator as JSON, as keyword arguments, and returns an `Experiment`.
The token is read from the environment variable TFRL_REPLAY_TOKEN.

A worker that loses the replay server joins again with the server's new address. Its
exit status is 0 at the end of the run, and 1 if it should be started again: after an
exception, or when the coordinator no longer answers.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib
import os
import pathlib
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tfrl import replay_service
from tfrl.distribute import learner_group, membership, supervised_server, tasks
from tfrl.distribute import servers as servers_lib
from tfrl.replay_service.transport import addresses

if TYPE_CHECKING:
    import tensorflow as tf

    from tfrl.distribute.experiment import Experiment

_PAUSE = 1.0  # Seconds before a worker joins again.
_POLL = 0.1  # Seconds between looks at a server.


def main(arguments: Sequence[str] | None = None) -> int:
    """Works until the run ends; returns the exit status."""
    options = _parser().parse_args(arguments)
    return work(
        tasks.Task(options.role, options.index),
        options.coordinator,
        lambda **settings: load(options.experiment)(**settings),
        host=options.host,
        patience=options.patience,
    )


def work(
    task: tasks.Task,
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
        member = membership.Membership(coordinator, task, patience=patience)
        try:
            result = _work(member, make_experiment, host)
        except replay_service.ReverbError as error:
            member.leave(error=traceback.format_exc(), lost=str(error))
            print(f"{task.title}: {error} It joins again.", file=sys.stderr, flush=True)
            time.sleep(_PAUSE)
            continue
        except BaseException:
            member.leave(error=traceback.format_exc(), lost=None)
            raise
        member.leave(result=result)
        if member.stopped_by:
            print(f"{task.title}: {member.stopped_by}.", file=sys.stderr, flush=True)
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
    return getattr(importlib.import_module(module), function)


def _work(
    member: membership.Membership, make_experiment: Callable[..., Experiment], host: str
) -> Any:
    """Does the work of a task until it ends; returns its result, valid in JSON."""
    if member.task.role == tasks.REPLAY:
        return _serve(member, host)
    servers = servers_lib.BoardServers(member)
    if not servers.wait():
        return None

    def is_stopped() -> bool:
        return bool(member.stopped_by) or servers.has_moved()

    work = functools.partial(_train, member, make_experiment, servers, is_stopped)
    if member.task.role == tasks.LEARNER and member.run["num_learners"] > 1:
        result = learner_group.train(member, host, work)
    else:
        result = work(None)
    if not member.stopped_by and servers.has_moved():
        raise replay_service.errors.ReplayUnavailable(
            f"The replay server at {servers.first} is at {servers.addresses()[0]} now."
        )
    return result


def _train(
    member: membership.Membership,
    make_experiment: Callable[..., Experiment],
    servers: servers_lib.Servers,
    is_stopped: Callable[[], bool],
    strategy: tf.distribute.Strategy | None,
) -> Any:
    """Does the work of an actor, the evaluator or the learner."""
    from tfrl import train
    from tfrl.distribute import actor, devices, evaluator, learner, lockstep

    run = member.run
    experiment = make_experiment(**run["settings"])
    devices.limit_to(experiment.device_of(member.task.role))
    if run["schedule"] == lockstep.LOCKSTEP:
        return _train_in_lockstep(member, experiment, servers.first, is_stopped)
    if member.task.role == tasks.ACTOR:
        actor.act(experiment, servers, member.task.number, member.number, is_stopped)
        return None
    if member.task.role == tasks.EVALUATOR:
        evaluator.evaluate(experiment, servers, is_stopped)
        return None
    if strategy is not None and member.task.number:
        learner.follow(experiment, servers, strategy)
        return None
    directory = train.RunDirectory(**run["directory"])
    result = learner.learn(
        experiment,
        servers,
        directory,
        run["num_iterations"],
        is_stopped,
        strategy,
        num_actors=run["num_actors"],
        has_evaluator=run["has_evaluator"],
    )
    return dataclasses.asdict(result)


def _train_in_lockstep(
    member: membership.Membership,
    experiment: Experiment,
    address: str,
    is_stopped: Callable[[], bool],
) -> Any:
    from tfrl import train
    from tfrl.distribute import lockstep_actor, lockstep_learner

    run = member.run
    number, num_actors = member.task.number, run["num_actors"]
    if member.task.role == tasks.ACTOR:
        lockstep_actor.act(experiment, address, number, num_actors, is_stopped)
        return None
    result = lockstep_learner.learn(
        experiment,
        address,
        train.RunDirectory(**run["directory"]),
        run["num_iterations"],
        num_actors,
        is_stopped,
    )
    return dataclasses.asdict(result)


def _serve(member: membership.Membership, host: str) -> None:
    """Runs the replay server until the run ends.

    Raises:
      ReplayUnavailable: The server has died.
    """
    run, number = member.run, member.task.number
    make_server = functools.partial(
        supervised_server.make_server,
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tfrl.distribute.worker",
        description="Does the work of one process of a run on several hosts.",
        epilog="The token of the run is read from TFRL_REPLAY_TOKEN.",
    )
    parser.add_argument("--role", choices=tasks.ROLES, required=True)
    parser.add_argument("--index", type=int, default=0, help="number of the actor (0)")
    parser.add_argument(
        "--experiment",
        required=True,
        metavar="PACKAGE.MODULE:FUNCTION",
        help="the function that makes the experiment from the run's settings",
    )
    parser.add_argument("--coordinator", required=True, metavar="HOST:PORT")
    parser.add_argument(
        "--host", help="address of this host for the others (found by itself)"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=60.0,
        help="seconds to keep trying to reach the coordinator (60)",
    )
    return parser


def _run_command() -> NoReturn:
    """Runs `main`, and ends the process even if TensorFlow would wait for others."""
    try:
        status = main()
    except Exception:
        traceback.print_exc()
        status = 1
    if learner_group.has_begun():
        sys.stdout.flush()
        sys.stderr.flush()
        # At its end, a group's runtime waits for learners that have ended already.
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    _run_command()
