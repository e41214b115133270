"""Memory for columns of rows, which other processes can map.

A mapped arena is one unnamed file (in memory on Linux), which is mapped once, with
about the size of the machine's memory. A column never moves within the file, so growing
copies nothing and the mappings of readers stay valid. Memory behind the mapping is
allocated explicitly, in small steps. So running out of memory raises an error, whereas
touching a page without memory behind it would kill the process. Memory of unused rows
can be given back, which makes a hole in the file.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.engine.storage import memory
from tfrl.replay_service.engine.storage.arena import MAX_ROWS, MOST_STEP, Arena

if sys.platform == "win32":
    raise ImportError("Windows has no memory that other processes could map so.")

_LEAST_SIZE = 16 << 20
_MADV_POPULATE_WRITE = 23  # The mmap module does not define it.
_LEAST_STEP = 96 << 10
_SLICE = 1 << 20  # Bytes. The kernel takes up to three milliseconds for it.
_PAGE = mmap.PAGESIZE


class MappedArena(Arena):
    """An arena that other processes can map."""

    def __init__(self, row_bytes: Sequence[int], size: int):
        """Creates the file and maps it.

        Args:
          row_bytes: The size of a row, for each column.
          size: The approximate maximum size in bytes. If the system refuses this size,
            a smaller size is used.

        Raises:
          OSError: If the system provides no file or no mapping.
        """
        self._row_bytes = tuple(row_bytes)
        self._bytes_of_all = sum(row_bytes)
        self._writable: int | None
        self.fd: int | None
        self._writable, self.fd = writable, _ = _open_file()
        try:
            self._mapping, self.size = _map(writable, size)
            _seal(writable, is_for_readers=self.fd == writable)
            self.capacity = self._rows_that_fit()
        except BaseException:
            self.close()
            raise
        self.rows = 0
        self.offsets = self._place()
        self._ends = list(self.offsets)  # The end of the allocated part of each column.
        self._given_back = 0  # Bytes of holes before these ends.
        self.gives_back = _can_remove(self._mapping)
        self.columns = [
            np.frombuffer(self._mapping, f"V{size}", self.capacity, offset)
            if size
            else np.empty(0, "V1")
            for offset, size in zip(self.offsets, self._row_bytes, strict=True)
        ]

    @property
    def nbytes(self) -> int:
        """The memory used, in bytes."""
        return sum(self._ends) - sum(self.offsets) - self._given_back

    def reserve(self, rows: int) -> None:
        """Grows the arena to at least `rows` usable rows.

        Raises:
          ResourceExhaustedError: If there is not enough memory. The arena has as many
            usable rows as before.
        """
        for _ in self.reserving(rows):
            pass

    def reserving(self, rows: int) -> Iterator[None]:
        """Does the same as `reserve` in slices, one per step of the iterator.

        Raises:
          ResourceExhaustedError: If there is not enough memory. The arena has as many
            usable rows as before.
        """
        if rows <= self.rows:
            return
        if rows > self.capacity:
            raise errors.ResourceExhaustedError(
                f"{rows} steps of {self._bytes_of_all} bytes are more than the "
                f"{self.capacity} that fit into this machine's memory. Give the tables "
                "a smaller max_size."
            )
        held = self.rows * self._bytes_of_all
        step = min(max(held // 16, _LEAST_STEP), MOST_STEP)
        further = self.rows + step // max(self._bytes_of_all, 1)
        yield from self._back(min(max(rows, further), self.capacity))

    def giving_back(
        self, start: int, stop: int, before: bool, after: bool
    ) -> Iterator[None]:
        """Gives back the memory of usable rows, in slices.

        Pages that are shared with other rows are kept. Columns in which the rows have
        less than a page are kept, too.

        Args:
          start: The first row.
          stop: The row after the last one.
          before: Whether the rows before `start` have no memory, either.
          after: Whether the rows from `stop` on have no memory, either.
        """
        room = _SLICE
        for first, last in self._pages(start, stop, before, after):
            for at in range(first, last, _SLICE):
                if room <= 0:
                    yield
                    room = _SLICE
                size = min(_SLICE, last - at)
                self._mapping.madvise(mmap.MADV_REMOVE, at, size)
                self._given_back += size
                room -= size

    def taking(
        self, start: int, stop: int, before: bool, after: bool
    ) -> Iterator[None]:
        """Allocates memory that `giving_back` has given back, in slices.

        `start` and `stop` must be the same as for `giving_back`. `before` and `after`
        describe the neighbouring rows at the time of this call.

        Raises:
          ResourceExhaustedError: If there is not enough memory.
        """
        pages = self._pages(start, stop, before, after)
        total = sum(last - first for first, last in pages)
        memory.check(total)
        room = _SLICE
        for first, last in pages:
            for at in range(first, last, _SLICE):
                if room <= 0:
                    yield
                    room = _SLICE
                end = min(at + _SLICE, last)
                _allocate(self._writable, at, end)
                self._populate(at, end)
                room -= end - at
        self._given_back -= total

    def clear(self) -> bool:
        """Gives back all memory, if possible, with all rows; returns whether it did."""
        if not self.gives_back:
            return False
        for offset, end in zip(self.offsets, self._ends, strict=True):
            if offset < end:
                self._mapping.madvise(mmap.MADV_REMOVE, offset, end - offset)
        self.rows = self._given_back = 0
        self._ends = list(self.offsets)
        return True

    def close(self) -> None:
        """Closes the file. The columns stay readable while they are referenced."""
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

    def _back(self, rows: int) -> Iterator[None]:
        """Allocates memory for `rows` rows, in slices."""
        ends = [
            offset + _whole_pages(size * rows)
            for offset, size in zip(self.offsets, self._row_bytes, strict=True)
        ]
        room = _SLICE
        for column, end in enumerate(ends):
            # Between slices, other calls may allocate parts of the same memory.
            while (start := self._ends[column]) < end:
                if room == _SLICE:
                    memory.check(self._missing(ends))
                stop = min(start + room, end)
                _allocate(self._writable, start, stop)
                self._populate(start, stop)
                self._ends[column] = stop
                room -= stop - start
                if not room:
                    yield
                    room = _SLICE
        self.rows = max(self.rows, rows)

    def _pages(
        self, start: int, stop: int, before: bool, after: bool
    ) -> list[tuple[int, int]]:
        """Returns the bounds of the pages, in each column, that only these rows use.

        With `before` or `after`, a page counts even if it is shared with rows on that
        side.
        """
        found = []
        for offset, size in zip(self.offsets, self._row_bytes, strict=True):
            if (stop - start) * size < _PAGE:
                continue  # A page may have more than one such part.
            low, high = offset + start * size, offset + stop * size
            first = low // _PAGE * _PAGE if before else _whole_pages(low)
            last = _whole_pages(high) if after else high // _PAGE * _PAGE
            if first < last:
                found.append((first, last))
        return found

    def _missing(self, ends: Sequence[int]) -> int:
        """Returns the bytes to allocate until each column has memory to its end."""
        pairs = zip(ends, self._ends, strict=True)
        return sum(max(end - own, 0) for end, own in pairs)

    def _populate(self, start: int, end: int) -> None:
        """Maps all pages together, which takes half as long as one after another."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # Not available before Linux 5.14.
                self._mapping.madvise(_MADV_POPULATE_WRITE, start, end - start)


def _whole_pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _open_file() -> tuple[int, int]:
    """Returns descriptors of a new unnamed file, for this process and for readers."""
    if sys.platform == "linux":
        # A file in /dev/shm does not suffice, because /dev/shm is small in containers.
        with contextlib.suppress(OSError):
            flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
            fd = os.memfd_create("tfrl-replay", flags)
            return fd, _for_readers(fd)
    writable, path = tempfile.mkstemp(prefix="tfrl-replay-")
    try:
        return writable, os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except BaseException:
        os.close(writable)
        raise
    finally:
        os.unlink(path)


def _for_readers(fd: int) -> int:
    """Returns a descriptor that cannot be used to allocate memory for the file.

    Seals prevent readers from writing to the file, but not from calling fallocate.
    """
    try:
        os.fchmod(fd, 0o400)
        return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # For example, /proc is not mounted.
        return fd


def _map(fd: int, size: int) -> tuple[mmap.mmap, int]:
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", 0)
    size = _whole_pages(size)
    refused = False
    while True:
        try:
            os.ftruncate(fd, size)
            # After a refusal, half of the possible size is left for other mappings.
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


def _can_remove(mapping: mmap.mmap) -> bool:
    """Returns whether memory of the mapped file, which is empty, can be given back."""
    try:
        mapping.madvise(mmap.MADV_REMOVE, 0, _PAGE)
    except (AttributeError, OSError):  # For example, the file is sealed.
        return False
    return True


def _seal(fd: int, is_for_readers: bool) -> None:
    """Prevents readers from truncating the file and from writing to it.

    Readers get their own descriptor, which cannot be written to. A seal against
    writing by this descriptor would also keep this process from giving memory back.
    """
    if sys.platform != "linux":
        return
    import fcntl

    future_write = 0x10  # F_SEAL_FUTURE_WRITE: Linux 5.1.
    sizes = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    writing = [future_write] if is_for_readers else []
    for seals in (sizes, *writing, fcntl.F_SEAL_SEAL):
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
            f"There is not enough memory for {end - start} bytes of steps: {error}. "
            "Give the tables a smaller max_size, or the server more memory."
        ) from None
