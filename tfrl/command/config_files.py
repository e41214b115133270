"""Reads the file of `--config`: settings that flags may override."""

from __future__ import annotations

import difflib
import os
import pathlib
import runpy
from typing import TYPE_CHECKING, Any

from tfrl.algorithms import registry
from tfrl.algorithms.recipe import FIELDS, Recipe
from tfrl.environments import suites
from tfrl.train.runs import run_files

if TYPE_CHECKING:
    from tfrl.algorithms.builder import Builder


def read(file: str, kind: type[Builder], *, trusts: bool) -> Recipe:
    """Returns the recipe in a file.

    A JSON file holds an object of settings, such as the config.json of a run, or a
    preset, such as best.json of `tfrl tune`. The function `get_config()` of a Python
    file returns a dict of them. An `env` is the environment.

    Args:
      file: The path.
      kind: The class of the algorithm.
      trusts: Whether the environment of a JSON file may import a module.

    Raises:
      ValueError: There is no such file, or it holds no settings, or those of another
        algorithm, or of a run with parts of a program's own, or a field that is no
        setting of the algorithm, or it may not import its module.
    """
    path = pathlib.Path(file)
    if not path.exists():
        raise ValueError(_text_of_missing_file(file))
    found = _content(path)
    if parts := found.get("own_parts"):
        raise ValueError(
            f"--config: got {file!r}, of a run with parts of a program's own, {parts}, "
            "expected settings alone; run that program again, or give a copy of the "
            "file without own_parts to train with the usual parts."
        )
    name = registry.name_of(found)
    if name and name not in (kind.name, kind.relative):
        raise ValueError(
            f"--config: got {file!r}, settings of {name!r}, expected some of "
            f"{kind.name!r}; run tfrl train {name}."
        )
    known = [*kind.run_fields(), *FIELDS]
    for each in found:
        if each not in known and name in ("", kind.name):
            near = difflib.get_close_matches(each, known, n=1)
            meant = f"did you mean {near[0]}?" if near else "leave it out."
            raise ValueError(
                f"--config: got {each!r} in {file!r}, expected settings of "
                f"{kind.name!r}; {meant}"
            )
    if not (trusts or path.suffix == ".py"):  # Which has run already.
        suites.check_trusted(found.get("env") or "", file, "give --trust")
    return Recipe.from_json(found, kind)


def _content(path: pathlib.Path) -> dict[str, Any]:
    if path.suffix == ".py":
        return _returned(path)
    found = run_files.read_json(path, "give another file of settings")
    if not isinstance(found, dict):
        raise ValueError(
            f"--config: got a {type(found).__name__} in {str(path)!r}, expected a JSON "
            "object of settings."
        )
    if isinstance(found.get("settings"), dict):  # A preset.
        return {
            "algorithm": found.get("algorithm", ""),
            "env": found.get("environment"),
            **found["settings"],
        }
    return found


def _returned(path: pathlib.Path) -> dict[str, Any]:
    """Returns what `get_config()` of a Python file returns, as a dict."""
    get_config = runpy.run_path(str(path)).get("get_config")
    if not callable(get_config):
        raise ValueError(
            f"--config: got {str(path)!r}, which has no function get_config, expected "
            "one that returns a dict of settings; write one."
        )
    made = get_config()
    try:
        return dict(made)
    except (TypeError, ValueError):
        raise ValueError(
            f"--config: got a {type(made).__name__} from get_config() in "
            f"{str(path)!r}, expected a dict of settings; return one."
        ) from None


def _text_of_missing_file(path: str) -> str:
    """Returns the error for a missing file, which suggests a similar one."""
    folder, name = os.path.split(path)
    files = [each.name for each in pathlib.Path(folder).glob("*.*")]
    near = difflib.get_close_matches(name, files, n=1, cutoff=0.5)
    meant = (
        f"did you mean {os.path.join(folder, near[0])}?"
        if near
        else "--preset=NAME takes the settings that tfrl list settings shows."
    )
    return f"--config: got {path!r}, where there is no file; {meant}"
