"""How much memory something takes, where the system tells (Linux)."""

from __future__ import annotations

import gc
import pathlib
import threading
from typing import Any

_STATUS = pathlib.Path("/proc/self/status")
_MEMINFO = pathlib.Path("/proc/meminfo")


class Watch:
    """Within it, the memory of this process is watched."""

    def __enter__(self) -> Watch:
        gc.collect()
        self._before = self._peak = self._after = resident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()
        gc.collect()
        self._after = resident()

    def facts(self, raw: int) -> dict[str, Any]:
        """The growth against the raw size of what is held; nothing if unknown."""
        if not self._before:
            return {}
        return {
            "raw bytes": raw,
            "resident bytes": self._after - self._before,
            "peak bytes": self._peak - self._before,
        }

    def _look(self) -> None:
        while not self._ended.wait(0.01):
            self._peak = max(self._peak, resident())


def resident() -> int:
    """The memory of this process in bytes, or 0 where it cannot be told."""
    return _kilobytes(_STATUS, "VmRSS:") * 1024


def available() -> int:
    """The memory that is free for use in bytes, or 0 where it cannot be told."""
    return _kilobytes(_MEMINFO, "MemAvailable:") * 1024


def _kilobytes(path: pathlib.Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)
