"""Notes the processes that a launcher starts, and looks at processes from outside."""

from __future__ import annotations

import collections
import contextlib
import os
import pathlib
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any


class NotingLauncher:
    """A launcher that writes down the process id, and the port, of each start.

    They are in `NAME.pid` in a folder, where NAME is the member's, such as `actor_0`.
    """

    def __init__(self, folder: pathlib.Path, launcher: Any) -> None:
        """Keeps the folder, and the launcher that starts the processes."""
        self._folder = folder
        self._launcher = launcher

    @contextlib.contextmanager
    def launch(self, plan: Any) -> Iterator[list[Any]]:
        """Returns members whose starts are noted; see `distribute.Launcher`."""
        with self._launcher.launch(plan) as members:
            yield [
                member._replace(start=self._noting(member.name, member.start))
                for member in members
            ]

    def _noting(self, name: str, start: Callable[[int], Any]) -> Callable[[int], Any]:
        def noting(starts: int) -> Any:
            process = start(starts)
            note = f"{process.pid} {getattr(process, 'port', 0)}"
            (self._folder / f"{name.replace(' ', '_')}.pid").write_text(note)
            return process

        return noting


def noted(folder: pathlib.Path, name: str) -> tuple[int, int] | None:
    """Returns the process id and the port that were noted last; None before that."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        pid, port = (folder / f"{name.replace(' ', '_')}.pid").read_text().split()
        return int(pid), int(port)
    return None


def seconds_used(pid: int) -> float:
    """Returns the processor time of a process so far, on Linux."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    words = text[text.rindex(")") + 2 :].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """Returns the ids of a process's children, their children, and so on."""
    ps = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True)
    children = collections.defaultdict(list)
    for line in ps.stdout.splitlines():
        child, parent = map(int, line.split())
        children[parent].append(child)
    found = list(children[pid])
    for child in found:  # It grows meanwhile.
        found += children[child]
    return found


def running(pids: Sequence[int]) -> list[int]:
    """Returns which processes run; zombies do not."""
    if not pids:
        return []
    ps = ["ps", "-o", "pid=,stat=", "-p", ",".join(map(str, pids))]
    lines = subprocess.run(ps, capture_output=True, text=True).stdout.splitlines()
    states = (line.split() for line in lines)
    return [int(pid) for pid, state in states if not state.startswith("Z")]


def kill(pids: Sequence[int]) -> None:
    """Kills processes by SIGKILL."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
