"""Records that callbacks stopped a run, so that a later start leaves it stopped."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from typing import Any

from tfrl.system import files
from tfrl.train.runs import run_files, run_length

NAME = "stopped.json"


@dataclasses.dataclass(frozen=True)
class Stop:
    """A stop of a run by a callback.

    Attributes:
      length: The length that the run was to have.
      iteration: The iteration at which it stopped.
      environment_steps: The environment steps until then.
      stopped_by: The name of the callback, and its reason.
    """

    length: run_length.RunLength
    iteration: int
    environment_steps: int
    stopped_by: str

    @property
    def done(self) -> int:
        """The part of the length that was done, in its unit."""
        by_iterations = self.length.num_environment_steps is None
        return self.iteration if by_iterations else self.environment_steps

    def text(self, path: str | os.PathLike[str]) -> str:
        """Returns the message for the user who starts the run in `path` again."""
        return (
            f"This run was stopped at iteration {self.iteration:,} by "
            f"{self.stopped_by}, and stays so. Its outputs are in {os.fspath(path)}; "
            "continue with continue_stopped=True or --continue, or with another "
            "num_iterations or num_environment_steps, or start again with "
            "overwrite=True or --overwrite."
        )


def find(path: pathlib.Path, length: run_length.RunLength) -> Stop | None:
    """Returns how the run with a length in the folder `path` was stopped, or None."""
    return _read(path).get(length)


def mark(path: pathlib.Path, stop: Stop) -> None:
    """Records in the folder `path` that its run was stopped."""
    _write(path, {**_read(path), stop.length: stop})


def unmark(path: pathlib.Path, length: run_length.RunLength) -> None:
    """Forgets that the run of a length was stopped, if it was."""
    stops = _read(path)
    if stops.pop(length, None) is not None:
        _write(path, stops)


def _read(path: pathlib.Path) -> dict[run_length.RunLength, Stop]:
    """Returns the stops by their lengths; none if the file is missing or damaged."""
    try:
        stops = [_stop(**record) for record in run_files.read_json(path / NAME)]
    except (ValueError, TypeError):
        return {}
    return {stop.length: stop for stop in stops}


def _stop(length: dict[str, int | None], **numbers: Any) -> Stop:
    """Returns a stop; raises a TypeError or a ValueError for a damaged record."""
    stop = Stop(run_length.RunLength(**length), **numbers)
    counts = [stop.iteration, stop.environment_steps, stop.length.total]
    if not all(map(run_files.is_count, counts)):
        raise ValueError(f"counts: got {counts}, expected integers.")
    return stop


def _write(path: pathlib.Path, stops: dict[run_length.RunLength, Stop]) -> None:
    records = [dataclasses.asdict(stop) for stop in stops.values()]
    files.write_text(path / NAME, json.dumps(records, indent=2) + "\n")
