"""Loads algorithms from the folders of runs."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tfrl import train
from tfrl.algorithms import recipe as recipe_lib
from tfrl.algorithms import run_folders
from tfrl.savers import checkpoint_names
from tfrl.train.runs import run_files, run_length, stopped_runs

if TYPE_CHECKING:
    from tfrl.algorithms.builder import Builder


def load(
    folder: str | os.PathLike,
    environment: Any = None,
    *,
    trust: bool = False,
    **arguments: Any,
) -> Any:
    """Loads an algorithm from the folder of a run, or from a folder written by `save`.

    The algorithm is built by its recipe in config.json, and takes the arrays of the
    last checkpoint. No graph of the folder runs.

    Args:
      folder: The folder.
      environment: The environment, see `Algorithm`; None for the environment that the
        folder names.
      trust: Whether the folder is your own: the name of its environment may import a
        module, as "my_module:MyEnv-v0" does, and its sizes are not checked.
      **arguments: Own parts, as they were given when the run began: see `Algorithm`.

    Raises:
      FileNotFoundError: There is no run in the folder.
      ValueError: The run does not belong to one algorithm, or its environment has no
        name, or it has other own parts than those given, or a policy but no checkpoint;
        or without `trust` this name would import an unknown module, or layers are
        larger than the weights in the folder.
      CheckpointError: No checkpoint can be used.
    """
    path = pathlib.Path(folder)
    algorithm, recipe = _made(path, environment, trust=trust, arguments=arguments)
    if (path / "policy").exists() and not checkpoint_names.newest_first(
        path / "checkpoints"
    ):
        raise run_files.RunDirectoryError(
            f"folder: {str(path)!r} holds a policy but no checkpoint, expected one, "
            "which a run that tfrl sweep trained in one program with others does not "
            "have; tfrl evaluate, play and export use its policy."
        )
    algorithm.build()
    config = run_files.read_config(path / "config.json")
    _restore(algorithm, train.RunDirectory(path, config), recipe.length)
    algorithm.length = recipe.length
    algorithm.rows = run_files.read_rows(path / "diagnostics.jsonl")
    algorithm.initial_run = recipe.initial_run
    return algorithm


def load_best(
    folder: pathlib.Path, environment: Any = None, *, trust: bool = False
) -> tuple[Builder, Any]:
    """Loads the best policy of a run, and not its checkpoints.

    The folder may be read-only, and a process may train there.

    Args:
      folder: The folder.
      environment: See `load`.
      trust: See `load`.

    Returns:
      The algorithm, with other weights, and the policy.

    Raises:
      FileNotFoundError: There is no run in the folder, or it has no policy yet.
      ValueError: See `load`; or the weights belong to another policy.
    """
    # Not at the top: --help does not wait for TensorFlow.
    from tfrl.policies.saving import weights

    algorithm, recipe = _made(folder, environment, trust=trust, arguments={})
    if not (folder / "policy").exists():
        raise FileNotFoundError(
            f"folder: {str(folder)!r} holds no policy, expected the one that training "
            "writes to FOLDER/policy after its first evaluation; go on until then."
        )
    policy = algorithm.make_initialized_agent().policy
    with _naming(algorithm.world.name, recipe):
        weights.load(policy, folder / "policy")
    return algorithm, policy


@contextlib.contextmanager
def _naming(name: str, recipe: recipe_lib.Recipe) -> Iterator[None]:
    """Names the environment of a run in errors about weights that fit no other one."""
    try:
        yield
    except ValueError as error:
        if name == recipe.environment:
            raise
        raise ValueError(
            f"environment_name: got {name!r}, expected {recipe.environment!r}, in "
            "which the run trained, or one with its observations and actions: "
            f"{error}"
        ) from error


def _made(
    path: pathlib.Path, environment: Any, *, trust: bool, arguments: Mapping[str, Any]
) -> tuple[Builder, recipe_lib.Recipe]:
    """Returns the algorithm of the run in a folder, without parts, and its recipe."""
    recipe = run_folders.load_recipe(path)
    if not trust:
        takes_environment = environment is None
        run_folders.check_trusted(
            path, recipe, "give trust=True", takes_environment=takes_environment
        )
    with run_folders.naming(path):
        # Its weights are in its checkpoint; the run that it began with may be gone.
        without = dataclasses.replace(recipe, initial_run=None)
        algorithm = without.make(environment, **arguments)
    run_folders.check_own_parts(path, recipe.own_parts, algorithm.own_parts())
    return algorithm, recipe


def load_policy(
    recipe: recipe_lib.Recipe,
    environment: Any,
    policy: str | os.PathLike,
    name: str,
) -> Any:
    """Builds a policy by the recipe of a run, with the weights of a saved policy.

    Args:
      recipe: The run's recipe.
      environment: The environment that the policy acts in.
      policy: The folder of the saved policy.
      name: The environment's name.

    Raises:
      ValueError: The recipe makes none, or the weights belong to another policy.
    """
    # Not at the top: --help does not wait for TensorFlow.
    from tfrl.policies.saving import weights

    played = dataclasses.replace(recipe, environment=name, initial_run=None)
    made = played.make(environment).make_initialized_agent().policy
    with _naming(name, recipe):
        weights.load(made, policy)
    return made


def _restore(
    algorithm: Builder, directory: train.RunDirectory, length: run_length.RunLength
) -> None:
    """Restores the last checkpoint of a run."""
    train.Run(algorithm.loop, directory, **dataclasses.asdict(length))
    directory.unlock()


def restore_longer(
    algorithm: Builder, folder: pathlib.Path, length: run_length.RunLength
) -> None:
    """Restores the run in a folder that was begun with a greater length.

    Args:
      algorithm: The algorithm, with its parts.
      folder: The folder.
      length: The length to which the run has to have trained.

    Raises:
      RunDirectoryError: The folder belongs to another run, or the run has not trained
        so long.
    """
    begun = run_folders.load_recipe(folder, type(algorithm))
    recipe = recipe_lib.Recipe.of_algorithm(algorithm)
    directory = run_folders.open_folder(folder, recipe.with_length_of(begun))
    whole = begun.length
    _restore(algorithm, directory, whole)
    info = algorithm.loop.info()
    if not length.is_reached(info):
        raise run_files.RunDirectoryError(
            f"logdir {str(folder)!r}: got a length of {length.total:,} {length.unit}, "
            f"but the run there was begun with {whole.total:,}, and has done "
            f"{length.done(info):,}; give {whole.total:,} to go on with it, choose "
            "another logdir, or start again with overwrite=True."
        )


def has_trained_on(algorithm: Builder, length: run_length.RunLength) -> bool:
    """Whether the run of an algorithm was begun with a greater length in a unit."""
    folder = algorithm.logdir
    if folder is None or not (folder / "config.json").exists():
        return False
    begun = run_folders.load_recipe(folder, type(algorithm)).length
    is_longer = begun.unit == length.unit and begun.total > length.total
    return is_longer and stopped_runs.find(folder, begun) is None
