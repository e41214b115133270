"""Trains an algorithm with actors, replay servers and learners in processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from tfrl import distribute
from tfrl import train as train_lib
from tfrl.algorithms import run_folders
from tfrl.experiments import actors, single
from tfrl.system import log

if TYPE_CHECKING:
    from tfrl.algorithms.algorithm import Algorithm

_WHERE = {
    "local": "processes on this host",
    "ray": "processes on Ray's cluster",
    "command": "processes that you start by the commands below",
}


def train(
    algorithm: Algorithm,
    settings: Mapping[str, Any],
    *,
    num_actors: int,
    num_shards: int = 1,
    num_learners: int = 1,
    evaluator: bool = False,
    launcher: str = "local",
    address: str | None = None,
    schedule: Literal["free", "lockstep"] = "free",
    overwrite: bool = False,
    continue_stopped: bool = False,
    **options: bool,
) -> train_lib.RunResult | None:
    """Trains for `num_iterations` updates, or resumes such a run.

    Args:
      algorithm: The algorithm, with a `logdir` and without parts.
      settings: The values of `actors.ActorSettings`.
      num_actors: The number of processes that collect.
      num_shards: The number of replay servers.
      num_learners: The number of learners.
      evaluator: Whether a process of its own evaluates.
      launcher: What starts the processes: "local", "ray" or "command".
      address: The address of Ray's cluster, or of this host for the others.
      schedule: "free" or "lockstep"; see `distribute.run_distributed`.
      overwrite: Whether to remove the outputs of an earlier run first.
      continue_stopped: Whether a run that a callback has stopped continues.
      **options: Further arguments of `run_settings.make`.

    Returns:
      The result; None if the run had ended already.

    Raises:
      ImportError: Ray is not installed.
      ValueError: The algorithm cannot be trained with actors, or a setting is wrong.
    """
    if algorithm.initial_run:
        raise ValueError(
            f"initial_run: got {str(algorithm.initial_run)!r} with actors, expected "
            "none; train in one process, or leave it out."
        )
    host, port = _read_address(launcher, address)
    config = {
        **algorithm.config(),
        "actors": dict(settings),
        "num_shards": num_shards,
        "schedule": schedule,
    }
    actors.check(config)
    if schedule == "lockstep":
        actors.check_rounds(algorithm, settings, num_actors)

    def folder() -> train_lib.RunDirectory:
        assert algorithm.logdir is not None
        return run_folders.open_folder(
            algorithm.logdir, config, algorithm.defaults(), overwrite=overwrite
        )

    ended = single.ending(
        algorithm, folder, is_new=overwrite, continues=continue_stopped
    )
    if ended:
        log.info(ended)
        return None
    single.check_environment(algorithm)
    numbers = {
        "actor": num_actors,
        "replay server": num_shards,
        "learner": num_learners,
        "evaluator": int(evaluator),
    }
    parts = [f"{n} {name}{'s' * (n > 1)}" for name, n in numbers.items() if n]
    single.prepare_kernels(algorithm)
    arguments: dict[str, Any] = {
        "config": config,
        "actors": dict(settings),
        **options,
        "continue_stopped": continue_stopped,
    }
    experiment = actors.make_experiment(**arguments)
    log.info(f"Starting {', '.join(parts)}: {_WHERE[launcher]}.")
    directory = folder()
    directory.lock()
    return distribute.run_distributed(
        experiment,
        directory,
        num_actors,
        algorithm.num_iterations,
        num_shards=num_shards,
        num_learners=num_learners,
        launcher=_make_launcher(launcher, address, arguments, host, port),
        schedule=schedule,
        evaluator=evaluator,
    )


def _read_address(launcher: str, address: str | None) -> tuple[str, int | None]:
    """Returns the host and the port of an address, for the launcher "command".

    Raises:
      ValueError: The address does not suit the launcher.
    """
    if launcher == "local" and address is not None:
        raise ValueError(
            f"address: got {address!r} with --launcher=local, expected none; leave "
            "it out, or set --launcher to ray or command."
        )
    if launcher != "command":
        return "", None
    host, _, port = (address or "localhost:0").rpartition(":")
    if not (host and port.isdecimal()):
        raise ValueError(
            f"address: got {address!r} with --launcher=command, expected host:port; "
            "give the address of this host for the others, such as 10.0.0.5:9000."
        )
    return host, int(port) or None


def _make_launcher(
    name: str,
    address: str | None,
    arguments: dict[str, Any],
    host: str,
    port: int | None,
) -> distribute.Launcher:
    """Makes the launcher of a name."""
    if name == "ray":
        return distribute.RayLauncher(address)
    if name == "local":
        return distribute.LocalLauncher()
    return distribute.CommandLauncher(
        "tfrl.experiments.actors:make_experiment", arguments, host=host, port=port
    )
