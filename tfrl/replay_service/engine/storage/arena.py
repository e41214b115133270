"""Memory for rows of columns, which other processes can map.

A column is an array of rows of so many raw bytes each; all columns have as many rows.
A mapped arena is one file without a name (in memory on Linux), mapped once at a size
about that of the machine's memory. A column's place in it never changes, so growing
copies nothing and what readers have mapped stays right. What is backed by memory is
allocated explicitly in small steps: when there is no more, growing is an error, where
touching a page that cannot be had would end the process.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.engine.storage import memory

MAX_ROWS = 2**31 - 1  # Rows are numbered by int32.

_LEAST_SIZE = 16 << 20
_MADV_POPULATE_WRITE = 23  # Python has no name for it.
_LEAST_STEP = 96 << 10
_MOST_STEP = 8 << 20  # A few milliseconds of the kernel's time.
_PAGE = mmap.PAGESIZE


class Arena(Protocol):
    """Columns of rows of raw bytes.

    Attributes:
      columns: For each column its rows, of a void dtype, `[at least rows]`; of length 0
        if its rows have no bytes. May be replaced when the arena grows.
      rows: How many rows may be used.
      nbytes: The memory that is taken up.
      fd: A descriptor of the file, for readers; None if there is none.
      offsets: Where in the file each column starts.
      capacity: How many rows there can ever be.
      size: Of the file, in bytes.
    """

    columns: list[np.ndarray]
    rows: int
    fd: int | None
    offsets: tuple[int, ...]
    capacity: int
    size: int

    @property
    def nbytes(self) -> int: ...

    def reserve(self, rows: int) -> None:
        """Makes `rows` rows usable in all.

        Raises:
          ResourceExhaustedError: If memory is lacking; what was usable stays so.
        """

    def close(self) -> None:
        """Closes the file; the columns stay readable while they are referred to."""


def make_arena(row_bytes: Sequence[int], shared: bool) -> Arena:
    """Returns an arena of columns, mapped if `shared` and the system can do so.

    Args:
      row_bytes: The size of a row of each column.
      shared: Whether other processes of this host are to read it.
    """
    if shared and os.name == "posix":
        # A sandbox may refuse files or mappings: then the rows travel over the socket.
        with contextlib.suppress(OSError, ValueError):
            return MappedArena(row_bytes, memory.total())
    return HeapArena(row_bytes)


class MappedArena:
    """An arena that other processes can map.

    Args:
      row_bytes: The size of a row of each column.
      size: How many bytes there can ever be, about; less if the system refuses this.

    Raises:
      OSError: If the system has no file or no mapping for it.
    """

    def __init__(self, row_bytes: Sequence[int], size: int):
        self._row_bytes = tuple(row_bytes)
        self._bytes_of_all = sum(row_bytes)
        self._writable: int | None
        self.fd: int | None
        self._writable, self.fd = writable, _ = _open_file()
        try:
            self._mapping, self.size = _map(writable, size)
            _seal(writable)
            self.capacity = self._rows_that_fit()
        except BaseException:
            self.close()
            raise
        self.rows = 0
        self.offsets = self._place()
        self._ends = list(self.offsets)  # Of what is backed by memory.
        self.columns = [
            np.frombuffer(self._mapping, f"V{size}", self.capacity, offset)
            if size
            else np.empty(0, "V1")
            for offset, size in zip(self.offsets, self._row_bytes, strict=True)
        ]

    @property
    def nbytes(self) -> int:
        return sum(self._ends) - sum(self.offsets)

    def reserve(self, rows: int) -> None:
        if rows <= self.rows:
            return
        if rows > self.capacity:
            raise errors.ResourceExhaustedError(
                f"{rows} steps of {self._bytes_of_all} bytes are more than the "
                f"{self.capacity} that there is room for on this machine. Give the "
                "tables a smaller max_size."
            )
        held = self.rows * self._bytes_of_all
        step = min(max(held // 16, _LEAST_STEP), _MOST_STEP)
        further = self.rows + step // max(self._bytes_of_all, 1)
        self._back(min(max(rows, further), self.capacity))

    def close(self) -> None:
        if self._writable is not None:
            os.close(self._writable)
        if self.fd is not None and self.fd != self._writable:
            os.close(self.fd)
        self._writable = self.fd = None

    def _rows_that_fit(self) -> int:
        usable = self.size - _PAGE * len(self._row_bytes)
        fitting = usable // max(self._bytes_of_all, 1)
        if fitting < 1:
            raise OSError(f"No row of {self._bytes_of_all} bytes fits in {self.size}.")
        return min(fitting, MAX_ROWS)

    def _place(self) -> tuple[int, ...]:
        offsets, end = [], 0
        for size in self._row_bytes:
            offsets.append(end)
            end = _whole_pages(end + size * self.capacity)
        return tuple(offsets)

    def _back(self, rows: int) -> None:
        ends = [
            max(end, offset + _whole_pages(size * rows))
            for end, offset, size in zip(
                self._ends, self.offsets, self._row_bytes, strict=True
            )
        ]
        if ends != self._ends:
            memory.check(sum(ends) - sum(self._ends))
        for column, end in enumerate(ends):
            if end > self._ends[column]:
                _allocate(self._writable, self._ends[column], end)
                self._populate(self._ends[column], end)
                self._ends[column] = end
        self.rows = rows

    def _populate(self, start: int, end: int) -> None:
        """Maps pages all at once, which takes half the time of one by one."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # Before Linux 5.14.
                self._mapping.madvise(_MADV_POPULATE_WRITE, start, end - start)


class HeapArena:
    """An arena of this process alone, for systems without shared mappings.

    Args:
      row_bytes: The size of a row of each column.
    """

    fd: int | None = None
    offsets: tuple[int, ...] = ()
    capacity = MAX_ROWS
    size = 0

    def __init__(self, row_bytes: Sequence[int]):
        self.columns = [np.empty(0, f"V{max(size, 1)}") for size in row_bytes]
        self.rows = 0
        self._row_bytes = tuple(row_bytes)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns)

    def reserve(self, rows: int) -> None:
        if rows <= self.rows:
            return
        further = self.rows + min(self.rows // 8, _MOST_STEP)
        rows = max(rows, further, 16)
        memory.check(rows * sum(self._row_bytes))  # The old columns go only afterwards.
        try:
            columns = [
                self._longer(column, rows if size else 0)
                for column, size in zip(self.columns, self._row_bytes, strict=True)
            ]
        except MemoryError:
            raise errors.ResourceExhaustedError(
                f"There is no memory for {rows} steps of {sum(self._row_bytes)} bytes. "
                "Give the tables a smaller max_size."
            ) from None
        self.columns, self.rows = columns, rows

    def close(self) -> None:
        pass

    def _longer(self, column: np.ndarray, rows: int) -> np.ndarray:
        longer = np.empty(rows, column.dtype)
        longer[: len(column)] = column
        return longer


def _whole_pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _open_file() -> tuple[int, int]:
    """Returns two descriptors of a new file without a name: ours and the readers'."""
    if sys.platform == "linux":
        # Not a file of /dev/shm, which is small in a container.
        with contextlib.suppress(OSError):
            flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
            fd = os.memfd_create("tfrl-replay", flags)
            return fd, fd
    writable, path = tempfile.mkstemp(prefix="tfrl-replay-")
    try:
        return writable, os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except BaseException:
        os.close(writable)
        raise
    finally:
        os.unlink(path)


def _map(fd: int, size: int) -> tuple[mmap.mmap, int]:
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", 0)
    size = _whole_pages(size)
    refused = False
    while True:
        try:
            os.ftruncate(fd, size)
            # What a limit leaves is not all for this one.
            if not refused:
                return mmap.mmap(fd, size, flags), size
            mmap.mmap(fd, size, flags).close()
            size = _whole_pages(size // 2)
            os.ftruncate(fd, size)
            return mmap.mmap(fd, size, flags), size
        except (OSError, OverflowError, ValueError):
            refused = True
            size = _whole_pages(size // 2)
            if size < _LEAST_SIZE:
                raise


def _seal(fd: int) -> None:
    """Keeps readers from writing to the file and from truncating it under us."""
    if sys.platform != "linux":
        return
    import fcntl

    future_write = 0x10  # F_SEAL_FUTURE_WRITE: Linux 5.1.
    sizes = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    for seals in (sizes, future_write, fcntl.F_SEAL_SEAL):
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)


def _allocate(fd: int | None, start: int, end: int) -> None:
    assert fd is not None, "The arena is closed."
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, start, end - start)
            return
        zeros = memoryview(bytes(1 << 20))
        while start < end:
            start += os.pwrite(fd, zeros[: end - start], start)
    except OSError as error:
        raise errors.ResourceExhaustedError(
            f"There is no memory for {end - start} bytes of further steps: {error}. "
            "Give the tables a smaller max_size, or the server more memory."
        ) from None
