"""The folders of runs, and the configurations of runs that earlier versions began."""

from __future__ import annotations

import contextlib
import functools
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from tfrl import train
from tfrl.algorithms import registry
from tfrl.environments import suites
from tfrl.savers import checkpoint_names
from tfrl.train.runs import run_files


def open_folder(
    folder: pathlib.Path,
    fields: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    overwrite: bool = False,
    **options: Any,
) -> train.RunDirectory:
    """Returns the folder of a run.

    An earlier version may have begun the run there, with other fields: new fields at
    their defaults may be missing, and fields of other algorithms may be there.

    Args:
      folder: The folder.
      fields: The run's configuration.
      defaults: The defaults of the algorithm's settings.
      overwrite: Whether to remove the outputs of an earlier run first.
      **options: Further arguments of `train.RunDirectory`.

    Raises:
      RunDirectoryError: The folder belongs to another run.
    """
    fields = {"own_parts": "", **fields}
    config = folder / "config.json"
    if not overwrite and config.exists():
        begun = run_files.read_config(config)
        defaults = {
            **defaults,
            "own_parts": fields["own_parts"],
        }
        fields = {
            name: value
            for name, value in fields.items()
            if name in begun or value != defaults.get(name, _NOTHING)
        }
        foreign = kinds().keys() - defaults.keys() - fields.keys()
        fields |= {name: x for name, x in begun.items() if name in foreign}
    # A run may resume on another device.
    return train.RunDirectory(
        folder, fields, overwrite=overwrite, may_change=["device"], **options
    )


def read(folder: pathlib.Path) -> dict[str, Any]:
    """Returns the configuration of the run in a folder, for commands that look at it.

    A warning tells of fields whose values have other types than the settings of any
    algorithm with such a field; they are left out.

    Raises:
      RunDirectoryError: There is none, or it cannot be read.
    """
    return run_files.read_config(folder / "config.json", kinds())


def check_trusted(folder: pathlib.Path, config: Mapping[str, Any], remedy: str) -> None:
    """Checks that the environment in a run's configuration imports no unknown module.

    Args:
      folder: The folder of the run.
      config: Its configuration.
      remedy: How to trust it, for the error.

    Raises:
      RunDirectoryError: It would; see `suites.check_trusted`.
    """
    name = config.get("env")
    if isinstance(name, str):
        try:
            suites.check_trusted(name, folder / "config.json", remedy)
        except ValueError as error:
            raise run_files.RunDirectoryError(str(error)) from None


@contextlib.contextmanager
def naming(folder: pathlib.Path) -> Iterator[None]:
    """Names the configuration of the run in a folder in the errors of its settings."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise run_files.RunDirectoryError(
            f"{folder / 'config.json'}: {error}"
        ) from None


def is_same(folder: pathlib.Path, other: str | pathlib.Path | None) -> bool:
    """Whether two paths lead to the same folder; None leads to none."""
    return other is not None and pathlib.Path(other).resolve() == folder.resolve()


def has_checkpoint(folder: pathlib.Path | None) -> bool:
    """Whether there is a checkpoint in the folder of a run; False for None."""
    checkpoints = None if folder is None else folder / "checkpoints"
    return (
        checkpoints is not None
        and checkpoints.is_dir()
        and bool(checkpoint_names.newest_first(checkpoints))
    )


def remove_outputs(folder: pathlib.Path) -> None:
    """Removes the outputs of a run in a folder.

    Raises:
      RunDirectoryError: The folder cannot be used.
    """
    train.RunDirectory(folder, {}, overwrite=True)
    (folder / "config.json").unlink()


_NOTHING = object()


@functools.cache
def kinds() -> dict[str, tuple[type, ...]]:
    """Returns the types that the settings of all algorithms have in a JSON file."""
    found: dict[str, set[type]] = {}
    for algorithm in registry.CLASSES:
        for name, value in registry.find(algorithm).defaults().items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            types = {int, float} if is_number else {type(json.loads(json.dumps(value)))}
            found.setdefault(name, set()).update(types)
    return {name: tuple(types) for name, types in found.items()}
