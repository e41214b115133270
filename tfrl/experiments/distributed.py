"""Trains an algorithm with actors, replay servers and learners in processes."""

from __future__ import annotations

import pathlib
from typing import Any

from tfrl import distribute
from tfrl import train as train_lib
from tfrl.algorithms import run_folders
from tfrl.algorithms.recipe import Recipe
from tfrl.experiments import actors, single
from tfrl.system import log

_WHERE = {
    "local": "processes on this host",
    "ray": "processes on Ray's cluster",
    "command": "processes that you start by the commands below",
}


def train(
    recipe: Recipe,
    folder: pathlib.Path,
    *,
    num_actors: int,
    num_learners: int = 1,
    evaluator: bool = False,
    launcher: str = "local",
    address: str | None = None,
    overwrite: bool = False,
    continue_stopped: bool = False,
    **options: bool,
) -> train_lib.RunResult | None:
    """Trains for `num_iterations` updates, or resumes such a run.

    Args:
      recipe: What the run is made by, with the settings of its `actors`, the number
        `num_shards` of replay servers, and the `schedule`, "free" or "lockstep"; see
        `distribute.run_distributed`.
      folder: Its folder.
      num_actors: The number of processes that collect.
      num_learners: The number of learners.
      evaluator: Whether a process of its own evaluates.
      launcher: What starts the processes: "local", "ray" or "command".
      address: The address of Ray's cluster, or of this host for the others.
      overwrite: Whether to remove the outputs of an earlier run first.
      continue_stopped: Whether a run that a callback has stopped continues.
      **options: Further arguments of `run_settings.make`.

    Returns:
      The result; None if the run had ended already.

    Raises:
      ImportError: Ray is not installed.
      ValueError: The algorithm cannot be trained with actors, or a setting is wrong.
    """
    if recipe.initial_run:
        raise ValueError(
            f"initial_run: got {recipe.initial_run!r} with actors, expected "
            "none; train in one process, or leave it out."
        )
    host, port = _read_address(launcher, address)
    algorithm, given = recipe.make(), recipe.actors or {}
    num_shards = given.get("num_shards", 1)
    schedule = given.get("schedule", "free")
    actors.check(recipe)
    if schedule == "lockstep":
        actors.check_rounds(algorithm, actors.ActorSettings.of(recipe), num_actors)
    if ended := single.ending(
        recipe, folder, is_new=overwrite, continues=continue_stopped
    ):
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
        "recipe": recipe.to_json(),
        **options,
        "continue_stopped": continue_stopped,
    }
    experiment = actors.make_experiment(**arguments)
    log.info(f"Starting {', '.join(parts)}: {_WHERE[launcher]}.")
    directory = run_folders.open_folder(folder, recipe, overwrite=overwrite)
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
