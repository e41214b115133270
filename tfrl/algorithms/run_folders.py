"""The folders of runs, with the recipes in their config.json."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tfrl import train
from tfrl.algorithms import recipe as recipe_lib
from tfrl.algorithms import registry
from tfrl.algorithms import settings as settings_lib
from tfrl.environments import suites
from tfrl.system import paths
from tfrl.train.runs import run_files

if TYPE_CHECKING:
    from tfrl.algorithms.builder import Builder


def open_folder(
    folder: pathlib.Path,
    recipe: recipe_lib.Recipe,
    *,
    overwrite: bool = False,
    **options: Any,
) -> train.RunDirectory:
    """Returns the folder of a run.

    Args:
      folder: The folder.
      recipe: The run's recipe.
      overwrite: Whether to remove the outputs of an earlier run first.
      **options: Further arguments of `open_fields`.

    Raises:
      RunDirectoryError: The folder belongs to another run.
      ValueError: A setting is a schedule, which config.json cannot hold.
    """
    for name, value in recipe.settings.items():
        if callable(value):
            raise ValueError(
                f"{name}: got a schedule, {type(value).__name__}, but the config.json "
                f"of a run, in {str(folder)!r}, holds no schedules; give a number, or "
                "neither save nor give a logdir."
            )
    return open_fields(folder, recipe.to_json(), overwrite=overwrite, **options)


def open_fields(
    folder: pathlib.Path,
    fields: dict[str, Any],
    *,
    overwrite: bool = False,
    **options: Any,
) -> train.RunDirectory:
    """Returns the folder of runs that have these fields in common, such as a sweep's.

    Args:
      folder: The folder.
      fields: The fields of its config.json.
      overwrite: Whether to remove the outputs of an earlier run first.
      **options: Further arguments of `train.RunDirectory`.

    Raises:
      RunDirectoryError: The folder belongs to something else.
    """
    if overwrite:
        _check_removable(folder)
    # A run may resume on another device.
    return train.RunDirectory(
        folder,
        fields,
        overwrite=overwrite,
        may_change=["device"],
        absent=defaults_of(fields),
        **options,
    )


def defaults_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the defaults of the algorithm that fields of a config.json name.

    A run that began with an earlier version of tfrl lacks the settings that are new
    since then, whose defaults change nothing; so it goes on.
    """
    name = registry.name_of(fields)
    if name not in registry.CLASSES:
        return {}
    declared = registry.find(name).setting_fields()
    return {key: each.default for key, each in declared.items()}


def read(folder: pathlib.Path) -> dict[str, Any]:
    """Returns the fields of the config.json in a folder, for commands that look at it.

    A warning tells of fields whose values have other types than the settings of any
    algorithm with such a field; they are left out.

    Raises:
      FileNotFoundError: There is no run in the folder.
      RunDirectoryError: The configuration cannot be read.
    """
    run_files.check_run(folder)
    return run_files.read_config(folder / "config.json", kinds())


def find_recipe(folder: pathlib.Path) -> recipe_lib.Recipe | None:
    """Returns the recipe of the run in a folder; None if it names no algorithm.

    Raises:
      FileNotFoundError: There is no run in the folder.
      RunDirectoryError: The configuration cannot be read.
    """
    return recipe_in(folder, read(folder))


def recipe_in(folder: pathlib.Path, fields: dict[str, Any]) -> recipe_lib.Recipe | None:
    """Does the same for the fields that `read` has returned."""
    if registry.name_of(fields) not in registry.CLASSES:
        return None
    with naming(folder):
        return recipe_lib.Recipe.from_json(fields)


def load_recipe(
    folder: pathlib.Path, algorithm: type[Builder] | None = None
) -> recipe_lib.Recipe:
    """Returns the recipe of the run in a folder, to go on with it.

    Args:
      folder: The folder.
      algorithm: The class; None for that of the name in the folder.

    Raises:
      FileNotFoundError: There is no run in the folder.
      RunDirectoryError: There is no recipe in its configuration.
    """
    run_files.check_run(folder)
    fields = run_files.read_config(folder / "config.json")
    with naming(folder):
        if not fields.get("num_environment_steps") and "num_iterations" not in fields:
            raise ValueError(
                "num_iterations: expected the length of the run, got none; restore it."
            )
        return recipe_lib.Recipe.from_json(fields, algorithm)


def check_trusted(
    folder: pathlib.Path,
    recipe: recipe_lib.Recipe,
    remedy: str,
    *,
    takes_environment: bool = True,
) -> None:
    """Checks what a run's configuration makes this process do, before it does it.

    A configuration may be from somebody else. Its environment may import no unknown
    module, see `suites.check_trusted`, and its layers need no more memory than the
    weights in the folder.

    Args:
      folder: The folder of the run.
      recipe: Its recipe.
      remedy: How to trust it, for the error.
      takes_environment: Whether the environment that it names is made.

    Raises:
      RunDirectoryError: It may do more.
    """
    file = folder / "config.json"
    if takes_environment:
        try:
            suites.check_trusted(recipe.environment, file, remedy)
        except ValueError as error:
            raise run_files.RunDirectoryError(str(error)) from None
    fields, settings = recipe.algorithm.run_fields(), recipe.settings
    held = max(_bytes_of_weights(folder), _MOST_UNSAVED)
    for name in sorted(settings):
        check = fields[name].metadata["check"]
        if check in _SIZES and (size := _size_of(settings[name])) > held:
            raise run_files.RunDirectoryError(
                f"{file}: {name} is {str(settings[name])[:40]}, which needs at least "
                f"{size:,} bytes, and the weights of the run have {held:,}; if you "
                f"trust it, {remedy}."
            )


def check_reads_nothing(
    folder: pathlib.Path, recipe: recipe_lib.Recipe, remedy: str
) -> None:
    """Checks that to train a run again reads no files that its configuration names.

    Args:
      folder: The folder of the run.
      recipe: Its recipe.
      remedy: How to trust it, for the error.

    Raises:
      RunDirectoryError: It reads the weights of another run, or recordings elsewhere
        than in the usual place.
    """
    usual = (None, "", f"{paths.RECORDINGS}/*.tfrecord")
    read = {"initial_run": recipe.initial_run, "data": recipe.settings.get("data")}
    for name, value in read.items():
        if value not in usual:
            raise run_files.RunDirectoryError(
                f"{folder / 'config.json'}: {name} is {str(value)[:200]!r}, "
                f"which would be read; if you trust it, {remedy}."
            )


# The checks of settings that say how much is allocated.
_SIZES = (
    settings_lib.SIZE,
    settings_lib.SIZE_OR_0,
    settings_lib.check_layers,
    settings_lib.check_convolutions,
)
# Buffers and batches of so many frames need not be in a checkpoint.
_MOST_UNSAVED = 10**7


def _size_of(value: Any) -> int:
    """Returns the least number of weights, or of frames, that a setting stands for."""
    if isinstance(value, list | tuple):
        pairs = itertools.pairwise(value)
        products = [x * y for x, y in pairs if _are_counts(x, y)]
        return max([*map(_size_of, value), *products], default=0)
    return value if _are_counts(value) else 0


def _are_counts(*values: Any) -> bool:
    return all(map(run_files.is_count, values))


def _bytes_of_weights(folder: pathlib.Path) -> int:
    """Returns the size of a run's checkpoints and saved policies."""
    files = [*folder.glob("checkpoints/*"), *folder.glob("*policy/variables/*")]
    return sum(file.stat().st_size for file in files if file.is_file())


def text_of_own_parts(folder: pathlib.Path, parts: str) -> str:
    """Says for errors that a run has parts of a program's own.

    Args:
      folder: The folder of the run.
      parts: Their names; see `Algorithm.own_parts`.
    """
    return f"the run in {str(folder)!r} has parts of a program's own, {parts}"


def check_own_parts(folder: pathlib.Path, begun: str, given: str) -> None:
    """Checks that a program gives the parts of its own with which a run was begun.

    Args:
      folder: The folder of the run.
      begun: The names of the parts with which it was begun.
      given: The names of the parts that are given; see `Algorithm.own_parts`.

    Raises:
      RunDirectoryError: They are others.
    """
    if begun == given:
        return
    if not begun:
        raise run_files.RunDirectoryError(
            f"the run in {str(folder)!r} has no parts of a program's own, got {given}; "
            "leave them out, or begin another run with its weights: initial_run=FOLDER."
        )
    raise run_files.RunDirectoryError(
        f"{text_of_own_parts(folder, begun)}, got {given or 'none'}; give the same "
        "ones again in a program: tfrl.load(FOLDER, network=...)."
    )


@contextlib.contextmanager
def naming(folder: pathlib.Path) -> Iterator[None]:
    """Names the configuration of the run in a folder in the errors of its settings."""
    try:
        yield
    except run_files.RunDirectoryError:
        raise  # It names its file.
    except (TypeError, ValueError) as error:
        raise run_files.RunDirectoryError(
            f"{folder / 'config.json'}: {error}"
        ) from None


def holds_run(folder: pathlib.Path) -> bool:
    """Whether the configuration in a folder is that of a run of an algorithm.

    Raises:
      RunDirectoryError: There is one that cannot be read.
    """
    config = folder / "config.json"
    return config.exists() and bool(registry.name_of(run_files.read_config(config)))


def check_no_training(folder: pathlib.Path) -> None:
    """Raises a RunDirectoryError if a run has trained in a folder, and logged there."""
    if (folder / "metrics.csv").exists():
        raise run_files.RunDirectoryError(
            f"folder: got {str(folder)!r}, which holds the metrics of a run; give "
            "another folder, or overwrite=True to remove all outputs in it."
        )


def _check_removable(folder: pathlib.Path) -> None:
    """Raises a RunDirectoryError if a folder has the config.json of something else."""
    try:
        is_own = not (folder / "config.json").exists() or holds_run(folder)
    except run_files.RunDirectoryError:
        return  # A run's, which is damaged.
    if not is_own:
        raise run_files.RunDirectoryError(
            f"logdir {str(folder)!r}: holds a config.json that tfrl did not write, and "
            "keeps; choose another logdir."
        )


def remove_outputs(folder: pathlib.Path) -> None:
    """Removes the outputs of a run in a folder.

    Raises:
      RunDirectoryError: The folder cannot be used.
    """
    _check_removable(folder)
    train.RunDirectory(folder, {}, overwrite=True)
    (folder / "config.json").unlink()


@functools.cache
def kinds() -> dict[str, tuple[type, ...]]:
    """Returns the types that the settings of all algorithms have in a JSON file."""
    found: dict[str, set[type]] = {}
    for algorithm in map(registry.find, registry.CLASSES):
        for name, field in algorithm.run_fields().items():
            value = field.default
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            types: set[type] = (
                {int, float} if is_number else {type(json.loads(json.dumps(value)))}
            )
            if field.type in ("int | None", "float | None"):
                types |= {int, float, type(None)}
            found.setdefault(name, set()).update(types)
    return {name: tuple(types) for name, types in found.items()}
