"""The mark of a finished run, by which a later start recognises the run.

The mark lists the run's outputs with their sizes and checksums. While the outputs match
the list, nothing is left to do, and neither TensorFlow nor the agent is needed to find
this out.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from tfrl.system import files
from tfrl.train.runs import run_files

NAME = "finished.json"

# All outputs that a finished run would write again if they were damaged.
_MARKED = (
    "metrics.csv",
    "learning_curve.png",
    "agent.mp4",
    "checkpoints/*",
    "policy/**/*",
    "final_policy/**/*",
)


def mark(path: pathlib.Path, iteration: int) -> None:
    """Marks the run in the folder `path` as finished at `iteration`."""
    record = {"iteration": iteration, "files": _describe_files(path)}
    files.write_text(path / NAME, json.dumps(record, indent=2, sort_keys=True) + "\n")


def unmark(path: pathlib.Path) -> None:
    """Removes the mark, if there is one."""
    (path / NAME).unlink(missing_ok=True)


def find(path: pathlib.Path) -> int | None:
    """Returns the iteration at which the run in the folder `path` has finished.

    Returns:
      The iteration; None if there is no mark, or if an output was changed, added or
      removed since.
    """
    try:
        record = run_files.read_json(path / NAME)
        iteration, files = record["iteration"], record["files"]
    except (run_files.RunDirectoryError, KeyError, TypeError):
        return None
    is_whole = run_files.is_count(iteration) and files == _describe_files(path)
    return iteration if is_whole else None


def text(iteration: int, path: str | os.PathLike[str]) -> str:
    """Returns the message for the user who starts a finished run again."""
    return (
        f"This run is finished: {iteration:,} iterations done. Its outputs are in "
        f"{os.fspath(path)}; continue with a larger num_iterations or "
        "num_environment_steps, or start again with overwrite=True or "
        "--overwrite."
    )


def _describe_files(path: pathlib.Path) -> dict[str, Any]:
    """Returns the size and the checksum of each output, by its relative path."""
    found = [file for pattern in _MARKED for file in path.glob(pattern)]
    return {
        file.relative_to(path).as_posix(): [file.stat().st_size, _checksum(file)]
        for file in sorted(found)
        if file.is_file() and not file.is_symlink()
    }


def _checksum(path: pathlib.Path) -> int:
    with path.open("rb") as file:
        return files.crc32(file)
