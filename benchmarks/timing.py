"""Tells other processes that something is timed, so that they stand still.

    python -m benchmarks.timing COMMAND...

runs a command, and `python -m benchmarks` runs its comparisons, while background work,
such as `python -m benchmarks.scores --background`, leaves the processor alone.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

_NAME = "tfrl_timing_"


@contextlib.contextmanager
def declared() -> Iterator[None]:
    """Declares in this context that this process times something."""
    note = _folder() / f"{_NAME}{os.getpid()}"
    note.touch()
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def is_going_on() -> bool:
    """Returns whether a process that runs has declared that it times something."""
    return any(map(_is_running, _folder().glob(f"{_NAME}*")))


def _folder() -> pathlib.Path:
    return pathlib.Path(tempfile.gettempdir())


def _is_running(note: pathlib.Path) -> bool:
    number = note.name.removeprefix(_NAME)
    if not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # Another user's.
        return True
    return True


if __name__ == "__main__":
    with declared():
        sys.exit(subprocess.run(sys.argv[1:]).returncode)
