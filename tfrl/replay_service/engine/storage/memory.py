"""How much memory this process may still take, so that it can stop before it is killed.

The kernel gives out memory that it does not have and ends a process when that comes to
light. Growing in steps, and asking before each, makes an error of it instead.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from tfrl.replay_service import errors

_SPARE = 64 << 20  # Left for the rest of this process and its neighbours.
_ANY = 1 << 36  # Where the system does not say what it has.
_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")  # Of this container, with version 2.


def total() -> int:
    """Returns the bytes of memory that this machine has, about."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _ANY


def check(size: int) -> None:
    """Raises if `size` more bytes of memory are not to be had.

    Raises:
      ResourceExhaustedError: If they are more than this machine, or this process's
        control group, has left.
    """
    left = available()
    if left is not None and size > left - _SPARE:
        raise errors.ResourceExhaustedError(
            f"There is no memory for {size} bytes of further steps: {max(left, 0)} are "
            f"left, of which {_SPARE} are kept for others. Give the tables a smaller "
            "max_size, or the server more memory."
        )


def available() -> int | None:
    """Returns the bytes that may still be taken; None if the system does not say."""
    if sys.platform != "linux":
        return None
    left = None
    with contextlib.suppress(OSError, KeyError, ValueError, IndexError):
        fields = _fields(_MEMINFO, ":")
        left = 1024 * (fields["MemAvailable"] + fields.get("SwapFree", 0))
    with contextlib.suppress(OSError, KeyError, ValueError, IndexError):
        limit = int((_GROUP / "memory.max").read_text())  # "max" is no number.
        used = int((_GROUP / "memory.current").read_text())
        files = _fields(_GROUP / "memory.stat", None)  # Dropped when there is need.
        of_group = limit - used + files["inactive_file"] + files["active_file"]
        left = of_group if left is None else min(left, of_group)
    return left


def _fields(path: Path, separator: str | None) -> dict[str, int]:
    lines = (line.split(separator) for line in path.read_text().splitlines())
    return {line[0]: int(line[1].split()[0]) for line in lines}
