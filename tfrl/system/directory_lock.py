"""Locks a directory for one process, so that two processes do not write to it.

The lock is one of the operating system on the file `lock`, which the kernel releases
when the process ends in any way. The file says which process holds the lock, for
people, and for file systems without such locks. It is removed with the lock.
"""

from __future__ import annotations

import atexit
import datetime
import errno
import json
import logging
import os
import pathlib
import socket
from typing import Any

try:
    import fcntl
except ImportError:  # Windows has no such locks.
    fcntl = None  # type: ignore[assignment]

NAME = "lock"

_LOGGER = logging.getLogger("tfrl.system")
_HELD_BY_ANOTHER = (errno.EACCES, errno.EAGAIN)

# The locks of this process, by the real paths of their directories.
_held: dict[str, DirectoryLock] = {}


class DirectoryLockedError(RuntimeError):
    """Another process holds the lock of a directory."""


class DirectoryLock:
    """The lock of a directory, held by this process until `release`."""

    def __init__(self, path: pathlib.Path, descriptor: int) -> None:
        """Keeps the locked file.

        Args:
          path: The path of the file.
          descriptor: The open file.
        """
        self._path = path
        self._descriptor = descriptor
        self._process = os.getpid()

    @property
    def is_intact(self) -> bool:
        """Whether this process holds the lock, and the file is still there."""
        return self._process == os.getpid() and _is_same_file(
            self._path, self._descriptor
        )

    def release(self) -> None:
        """Removes the file and releases the lock; does nothing if that is done."""
        if _held.get(_key(self._path.parent)) is not self:
            return
        del _held[_key(self._path.parent)]
        if self.is_intact:
            self._path.unlink()
        os.close(self._descriptor)


def lock(directory: str | os.PathLike) -> DirectoryLock:
    """Locks a directory for this process, which may lock it several times.

    The lock of a process that has ended is taken over, with a warning in the log.

    Args:
      directory: An existing directory.

    Raises:
      DirectoryLockedError: Another process holds the lock, or may hold it: on another
        host, or on a file system without locks.
      OSError: The file cannot be written.
    """
    path = pathlib.Path(directory) / NAME
    held = _held.get(_key(path.parent))
    if held is not None:
        if held.is_intact:
            return held
        held.release()
    descriptor = _open_and_lock(path)
    try:
        before = _read(descriptor)
        if before and before.get("host") != socket.gethostname():
            raise DirectoryLockedError(
                f"{_locked(path, before)}. Whether that process still runs cannot be "
                f"seen from this host; if it does not, remove the file: rm '{path}'"
            )
        _write(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    if before:
        _LOGGER.warning(
            "directory %r: %s, which has ended; process %d takes over.",
            str(path.parent),
            _locked(path, before),
            os.getpid(),
        )
    _held[_key(path.parent)] = result = DirectoryLock(path, descriptor)
    return result


def is_held(directory: str | os.PathLike) -> bool:
    """Whether this process holds the lock of a directory."""
    held = _held.get(_key(pathlib.Path(directory)))
    return held is not None and held.is_intact


def _open_and_lock(path: pathlib.Path) -> int:
    """Returns the descriptor of the locked file, which is created if missing."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock_file(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        # The process that held the lock may have removed the file in the meantime.
        if _is_same_file(path, descriptor):
            return descriptor
        os.close(descriptor)


def _lock_file(path: pathlib.Path, descriptor: int) -> None:
    """Locks an open file, or raises a DirectoryLockedError.

    The lock belongs to the process, so that its forked children do not hold it.
    """
    holder = _read(descriptor)
    try:
        if fcntl is None:
            raise OSError(errno.ENOSYS, "no locks")
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD_BY_ANOTHER:
            raise DirectoryLockedError(
                f"{_locked(path, holder)}. Two processes would spoil each other's "
                "files; wait until it ends, or use another directory."
            ) from None
        # The file system has no locks, so the file alone says who holds it.
        if _may_run(holder):
            raise DirectoryLockedError(
                f"{_locked(path, holder)}, on a file system without locks. Wait until "
                f"it ends; if it has ended, remove the file: rm '{path}'"
            ) from None


def _may_run(holder: dict[str, Any]) -> bool:
    """Whether the process may still run; one on another host may."""
    pid = holder.get("pid")
    if holder.get("host") != socket.gethostname() or not isinstance(pid, int):
        return bool(holder)
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _read(descriptor: int) -> dict[str, Any]:
    """Returns the process that the file names; empty for a file without one."""
    try:
        content = json.loads(os.pread(descriptor, 4096, 0) or b"{}")
    except ValueError:
        return {"pid": None, "host": socket.gethostname()}
    return content if isinstance(content, dict) else {}


def _write(descriptor: int) -> None:
    content = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.datetime.now().isoformat(" ", "seconds"),
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, (json.dumps(content) + "\n").encode(), 0)


def _locked(path: pathlib.Path, holder: dict[str, Any]) -> str:
    if holder.get("pid") is None:
        return f"locked by another process (file {path})"
    return (
        f"locked by process {holder['pid']} on host {holder.get('host')} since "
        f"{holder.get('since')} (file {path})"
    )


def _is_same_file(path: pathlib.Path, descriptor: int) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    own = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)


def _key(directory: pathlib.Path) -> str:
    return os.path.realpath(directory)


@atexit.register
def _release_all() -> None:
    for held in list(_held.values()):
        held.release()
