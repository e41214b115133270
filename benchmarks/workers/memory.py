"""Measures memory on systems that report it (Linux)."""

from __future__ import annotations

import contextlib
import gc
import pathlib
import stat
from typing import Any

_PROC = pathlib.Path("/proc")
_STATUS = pathlib.Path("/proc/self/status")
_CLEAR = pathlib.Path("/proc/self/clear_refs")
_MEMINFO = pathlib.Path("/proc/meminfo")


class Watch:
    """Measures the growth of this process' memory within a `with` block."""

    def __enter__(self) -> Watch:
        gc.collect()
        self._before = resident()
        with contextlib.suppress(OSError):
            _CLEAR.write_text("5")  # Sets the peak to the present memory.
        return self

    def __exit__(self, *_: Any) -> None:
        self._peak = _kilobytes(_STATUS, "VmHWM:") * 1024
        gc.collect()
        self._after = resident()

    def facts(self, raw: int) -> dict[str, Any]:
        """Returns the growth and the raw size of the data; empty if it is unknown."""
        if not self._before:
            return {}
        return {
            "raw bytes": raw,
            "resident bytes": self._after - self._before,
            "peak bytes": self._peak - self._before,
        }


def resident() -> int:
    """Returns the memory of this process in bytes, or 0 if it is unknown."""
    return _kilobytes(_STATUS, "VmRSS:") * 1024


def held(process: int) -> int:
    """Returns the bytes that a process and its descendants hold, or 0 if unknown.

    They are private memory, and unlinked files, which are shared with other processes:
    each file counts once, with all the blocks allocated for it, used or not.
    """
    own, shared = 0, {}
    for one in _family(process):
        own += _kilobytes(_PROC / str(one) / "status", "RssAnon:") * 1024
        with contextlib.suppress(OSError):
            for file in (_PROC / str(one) / "fd").iterdir():
                with contextlib.suppress(OSError):
                    status = file.stat()
                    if stat.S_ISREG(status.st_mode) and not status.st_nlink:
                        shared[status.st_dev, status.st_ino] = status.st_blocks * 512
    return own + sum(shared.values())


def available() -> int:
    """Returns the available memory in bytes, or 0 if it is unknown."""
    return _kilobytes(_MEMINFO, "MemAvailable:") * 1024


def _family(process: int) -> list[int]:
    """Returns a process and its descendants."""
    family = [process]
    parents: dict[int, list[int]] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    for one in family:
        family += parents.get(one, [])
    return family


def _kilobytes(path: pathlib.Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)
