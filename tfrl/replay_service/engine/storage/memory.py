"""Checks that memory is available, and allocates large arrays that are freed in slices.

The kernel promises more memory than the machine has, and kills a process when memory
runs out. A check before each allocation raises an error instead.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tfrl.replay_service import errors

_SPARE = 64 << 20  # Bytes reserved for other uses and for other processes.
_UNCHECKED = 64 << 20  # Bytes that `Reserved` grants without a check, which is slow.
_ANY = 1 << 36  # Assumed if the system does not report its memory.
_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")  # This container's group, with cgroup version 2.


_LARGE = 16 << 20  # Bytes. Smaller memory is allocated as usual.
_SLICE = 4 << 20  # Bytes that are freed together, in about half a millisecond.


def total() -> int:
    """Returns the approximate size of this machine's memory, in bytes."""
    if sys.platform == "win32":
        return _ANY
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _ANY


def check(size: int) -> None:
    """Checks that `size` more bytes of memory are available.

    Raises:
      ResourceExhaustedError: If this machine, or this process's control group, has
        less memory left.
    """
    left = available()
    if left is not None and size > left - _SPARE:
        raise errors.ResourceExhaustedError(
            f"There is not enough memory for {size} more bytes: {max(left, 0)} are "
            f"left, and {_SPARE} of these are reserved. Give the tables a smaller "
            "max_size, or the server more memory."
        )


class Reserved:
    """Counts bytes that are promised to writes, but not yet allocated.

    Attributes:
      size: The number of bytes.
    """

    def __init__(self) -> None:
        """Creates a count of 0."""
        self.size = 0

    def add(self, size: int) -> None:
        """Reserves `size` more bytes, or releases some if `size` is negative.

        Raises:
          ResourceExhaustedError: If there is not enough memory. Nothing is reserved.
        """
        if size > 0 and self.size + size > _UNCHECKED:
            check(self.size + size)
        self.size += size


def available() -> int | None:
    """Returns the number of available bytes; None if the system does not report it."""
    if sys.platform != "linux":
        return None
    left = None
    with contextlib.suppress(OSError, KeyError, ValueError, IndexError):
        fields = _fields(_MEMINFO, ":")
        left = 1024 * (fields["MemAvailable"] + fields.get("SwapFree", 0))
    with contextlib.suppress(OSError, KeyError, ValueError, IndexError):
        limit = int((_GROUP / "memory.max").read_text())  # "max" raises ValueError.
        used = int((_GROUP / "memory.current").read_text())
        files = _fields(_GROUP / "memory.stat", None)  # The kernel can drop files.
        of_group = limit - used + files["inactive_file"] + files["active_file"]
        left = of_group if left is None else min(left, of_group)
    return left


def _fields(path: Path, separator: str | None) -> dict[str, int]:
    lines = (line.split(separator) for line in path.read_text().splitlines())
    return {line[0]: int(line[1].split()[0]) for line in lines}


class LargeMemory:
    """Allocates arrays whose memory is freed in slices after their use.

    Freeing a few hundred megabytes takes the kernel tens of milliseconds, in which a
    server could not answer its clients.
    """

    def __init__(self, free: Callable[[Iterator[None]], None]):
        """Creates an allocator.

        Args:
          free: Called when an array is not used any more, with an iterator that frees
            one slice per step.
        """
        self._free = free

    def allocate(self, size: int) -> np.ndarray:
        """Returns a new array of `size` bytes, uint8, whose contents are undefined.

        Raises:
          MemoryError: If there is not enough memory.
        """
        if size < _LARGE or sys.platform == "win32":
            return np.empty(size, np.uint8)
        try:
            memory = _Mapping(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise MemoryError(str(error)) from error
        memory.free = self._free
        return np.frombuffer(memory, np.uint8)


class _Mapping(mmap.mmap):
    """Memory without a file."""

    free: Callable[[Iterator[None]], None] | None = None

    def __del__(self) -> None:
        # The iterator refers to this object until it has freed the memory.
        if self.free is not None:
            self.free(_freeing(self))


def _freeing(memory: _Mapping) -> Iterator[None]:
    for start in range(0, len(memory), _SLICE):
        if sys.platform != "win32":  # Not used on Windows.
            size = min(_SLICE, len(memory) - start)
            memory.madvise(mmap.MADV_DONTNEED, start, size)
        yield
    memory.close()
