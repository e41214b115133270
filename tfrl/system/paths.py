"""Directories for the outputs of a run, under an identifier of the run.

>>> import os
>>> from tfrl.system import paths
>>> path = paths.process_path("/tmp/tfrl", "logs", "actor")
>>> os.path.relpath(path, "/tmp/tfrl") == f"{paths.unique_id()}/logs/actor"
True
"""

from __future__ import annotations

import os
import pathlib
import re
import uuid

# The default directory of loggers and savers.
DEFAULT_DIRECTORY = "~/tfrl"
# Where `tfrl record` writes, and where algorithms look for data, by default.
RECORDINGS = "logs/recordings/{env}"

# Windows separates directories by backslashes.
_PATTERN = re.compile(r"[\[\]*?]" if os.sep == "\\" else r"[\[\]*?\\]")

_ID_VARIABLE = "TFRL_ID"
_PROCESS_ID = str(uuid.uuid4())


def file_name(text: str) -> str:
    """Returns a text as the name of a file, with a hyphen for each special character.

    >>> file_name("ALE/Pong-v5")
    'ALE-Pong-v5'
    """
    return re.sub(r"[^\w.-]", "-", text)


def in_folder_of(path: str, environment: str) -> str:
    """Returns a path or a pattern with the environment's name for its `{env}`.

    Args:
      path: The path, such as `RECORDINGS`.
      environment: The environment's name; empty if it has none.
    """
    return path.replace("{env}", file_name(environment))


def is_same(path: pathlib.Path, other: str | os.PathLike[str] | None) -> bool:
    """Whether two paths lead to the same place; None leads to none."""
    return other is not None and pathlib.Path(other).resolve() == path.resolve()


def pattern_problem(path: str | os.PathLike[str]) -> str | None:
    """Returns an error message if the path is a pattern for TensorFlow, else None.

    TensorFlow interprets the path of a checkpoint or SavedModel as a pattern, in which
    `[`, `]`, `*`, `?` and a backslash have a special meaning.
    """
    found = _PATTERN.search(os.fspath(path))
    if found is None:
        return None
    return (
        f"has {found[0]!r}, expected a path without any of []*?\\, since TensorFlow "
        "takes them for parts of a pattern, and would either not find the files "
        "again, or delete files of other directories; choose another name"
    )


def refuse_patterns(argument: str, path: str | os.PathLike[str]) -> None:
    """Raises a ValueError if the path is a pattern; see `pattern_problem`.

    Args:
      argument: The argument's name, for the error.
      path: The path of a checkpoint or a SavedModel, or of a directory above it.
    """
    problem = pattern_problem(path)
    if problem is not None:
        raise ValueError(f"{argument} {os.fspath(path)!r}: {problem}.")


def process_path(
    path: str | os.PathLike[str], *subpaths: str, add_uid: bool = True
) -> str:
    """Makes the directory `path/<unique_id>/<subpaths>` and returns its path.

    Args:
      path: The directory above; a leading `~` is the user's home.
      *subpaths: Directories below the identifier; empty ones are left out.
      add_uid: Whether `unique_id()` is part of the path.
    """
    parts = [unique_id(), *subpaths] if add_uid else list(subpaths)
    directory = os.path.join(os.path.expanduser(path), *filter(None, parts))
    os.makedirs(directory, exist_ok=True)
    return directory


def unique_id() -> str:
    """Returns the identifier of this run.

    The environment variable `TFRL_ID` sets it. A program that resumes needs its earlier
    identifier, and the processes of one run need the same identifier. Without the
    variable each process has a random identifier.
    """
    return os.environ.get(_ID_VARIABLE) or _PROCESS_ID
