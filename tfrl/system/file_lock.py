"""Locks of the operating system on open files, for one process at a time.

The lock is a `flock`, which belongs to the open file. So it does not end when the
process opens the same file again and closes it, for a copy, say. A POSIX record lock
(`fcntl.lockf`) would end then. Forked processes inherit the open file. They close it at
once, so that the lock ends with the process that took it. Only a process that was
forked in C, and does not run another program, keeps the file open.

On Windows one byte beyond the end of the file is locked, with `msvcrt.locking`.

On Linux an NFS client asks the server for the lock, so that other hosts see it, unless
the directory is mounted with `nolock` or `local_lock`. Other network file systems may
lock within one host only, or not at all.

>>> import tempfile
>>> from tfrl.system import file_lock
>>> with tempfile.NamedTemporaryFile() as file:
...     lock = file_lock.FileLock(os.open(file.name, os.O_RDWR))
...     try:
...         file_lock.FileLock(os.open(file.name, os.O_RDWR))
...     except file_lock.HeldError:
...         print("held")
...     lock.release()
held
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import weakref

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Windows lets nobody else read or write a locked byte, so the locked byte is beyond the
# end of every file.
_LOCKED_BYTE = 1 << 30
_HELD_BY_ANOTHER = (errno.EACCES, errno.EAGAIN)

_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


class HeldError(OSError):
    """Another open file holds the lock."""


class FileLock:
    """The lock of an open file, until `release` or the end of this process."""

    def __init__(self, descriptor: int) -> None:
        """Locks the file; closes the descriptor if that fails.

        Args:
          descriptor: The open file, which this object closes at the end.

        Raises:
          HeldError: Another process, or another lock of this process, holds the lock.
          OSError: The file system or the operating system has no such locks.
        """
        try:
            _lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno in _HELD_BY_ANOTHER:
                raise HeldError(error.errno, error.strerror) from None
            raise
        self._close = weakref.finalize(self, _unlock, descriptor)
        # The end of the process unlocks it, too, after all functions of `atexit`.
        self._close.atexit = False
        _locks.add(self)

    @property
    def is_held(self) -> bool:
        """Whether the file is still locked by this process."""
        return self._close.alive

    def release(self) -> None:
        """Unlocks and closes the file. May be called repeatedly."""
        self._close()


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unlock(descriptor: int) -> None:
    if sys.platform == "win32":  # Closing alone would unlock it later.
        with contextlib.suppress(OSError):
            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    os.close(descriptor)


def _close_all() -> None:
    for lock in list(_locks):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)
