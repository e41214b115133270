"""Memory for large, short-lived arrays, which is freed in slices.

Freeing a few hundred megabytes takes the kernel tens of milliseconds, in which a server
could not answer its clients.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Iterator

import numpy as np

_LARGE = 16 << 20  # Bytes. Smaller memory is allocated as usual.
_SLICE = 4 << 20  # Bytes that are freed together, in about half a millisecond.


class LargeMemory:
    """Allocates arrays whose memory is freed in slices after their use."""

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
