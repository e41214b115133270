"""Locks a directory for one process, so that two processes do not write to it.

The lock is a `file_lock` on the file `lock`, which the kernel releases when the process
ends in any way. The file names the process that holds the lock, for people, and for
file systems without locks. It is removed with the lock.

If the kernel grants the lock, the process named in the file is assumed to have ended,
even if it ran on another host, because a container has a new host name each time. This
can be wrong on a file system that does not show its locks to other hosts. The earlier
process then finds another name in the file, and its `DirectoryLock.loss` reports this.

On a file system without locks nothing is locked: the file alone names the process that
uses the directory. A process that starts there at the same moment is not noticed, and
the file of a killed process must be removed by hand if it was on another host or on
Windows.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import json
import logging
import os
import pathlib
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

from tfrl.system import file_lock, files, log

NAME = "lock"

_LOGGER = logging.getLogger("tfrl.system")

# The locks of this process, by the real paths of their directories.
_held: dict[str, DirectoryLock] = {}
_mutex = threading.RLock()


class DirectoryLockedError(RuntimeError):
    """Another process holds the lock of a directory."""


class DirectoryLock:
    """The lock of a directory, held by this process until `release`."""

    def __init__(
        self,
        path: pathlib.Path,
        lock: file_lock.FileLock | None,
        identity: tuple[int, int],
        content: dict[str, Any],
    ) -> None:
        """Stores the lock.

        Args:
          path: The path of the file.
          lock: The lock of the file; None on a file system without locks.
          identity: The device and the number of the file.
          content: The content that this process has written to the file.
        """
        self._path = path
        self._lock = lock
        self._identity = identity
        self._content = content
        self._process = os.getpid()

    @property
    def is_intact(self) -> bool:
        """Whether this process holds the lock, and the file is still there."""
        return self.loss() is None

    def loss(self) -> str | None:
        """Returns how this process has lost the lock; None while it holds the lock."""
        if self._process != os.getpid():
            return f"its lock belongs to process {self._process}, which forked this one"
        if self._lock is not None and not self._lock.is_held:
            return "its lock was released"
        if _identity(self._path) != self._identity:
            return f"the file of its lock was removed or replaced ({self._path})"
        # The file is opened again, since an NFS client then asks the server for it.
        named = _read(self._path)
        if named.get("pid") is not None and named != self._content:
            return f"it is {_locked(self._path, named)}"
        return None

    def release(self) -> None:
        """Removes the file and releases the lock, unless this has been done already."""
        with _mutex:
            if _held.get(_key(self._path.parent)) is not self:
                return
            del _held[_key(self._path.parent)]
            is_intact = self.is_intact
            if sys.platform == "win32":
                # On Windows no open file can be removed: neither ours nor another
                # process's.
                self._unlock()
                if is_intact:
                    with contextlib.suppress(OSError):
                        self._path.unlink()
                return
            # The file is removed first, because an unlocked file could belong to
            # another process.
            if is_intact:
                self._path.unlink()
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()


def lock(directory: str | os.PathLike) -> DirectoryLock:
    """Locks a directory for this process, which may lock it several times.

    The lock of a process that has ended is taken over, with a warning in the log.

    Args:
      directory: An existing directory.

    Raises:
      DirectoryLockedError: Another process holds the lock, or may hold it, on a file
        system without locks.
      OSError: The file cannot be written.
    """
    path = pathlib.Path(directory) / NAME
    with _mutex:
        held = _held.get(_key(path.parent))
        if held is not None:
            if held.is_intact:
                return held
            held.release()
        _held[_key(path.parent)] = result = _lock(path)
        return result


def is_held(directory: str | os.PathLike) -> bool:
    """Whether this process holds the lock of a directory."""
    held = _held.get(_key(pathlib.Path(directory)))
    return held is not None and held.is_intact


@contextlib.contextmanager
def locked(directory: str | os.PathLike) -> Iterator[None]:
    """Locks a directory; see `lock`. Releases the lock unless it was held before."""
    was_held = is_held(directory)
    held = lock(directory)
    try:
        yield
    finally:
        if not was_held:
            held.release()


def _lock(path: pathlib.Path) -> DirectoryLock:
    while True:
        files.check_plain(path)
        descriptor = files.open_plain(str(path), os.O_RDWR | os.O_CREAT)
        status = os.fstat(descriptor)
        if status.st_nlink > 1:
            os.close(descriptor)
            raise OSError(f"{path} has other names, which are hard links")
        identity = _number(status)
        before = _read(path)
        own = _lock_file(path, descriptor, before)
        try:
            # The process that held the lock may have removed the file in the meantime.
            if _identity(path) == identity:
                content = _write(path)
                break
        except BaseException:
            if own is not None:
                own.release()
            raise
        if own is not None:
            own.release()
    if before:
        _LOGGER.warning(
            "directory %r: %s, which does not hold it any more; process %d takes over.",
            str(path.parent),
            _locked(path, before),
            os.getpid(),
        )
    return DirectoryLock(path, own, identity, content)


def _lock_file(
    path: pathlib.Path, descriptor: int, holder: dict[str, Any]
) -> file_lock.FileLock | None:
    """Locks an open file; returns None if the file system has no locks.

    Raises:
      DirectoryLockedError: Another process holds the lock, or may hold it.
    """
    try:
        return file_lock.FileLock(descriptor)
    except file_lock.HeldError:
        raise DirectoryLockedError(
            f"{_locked(path, holder)}. Two processes would spoil each other's files; "
            "wait until it ends, or use another directory."
        ) from None
    except OSError:
        if _may_run(holder):
            raise DirectoryLockedError(
                f"{_locked(path, holder)}, on a file system without locks. Wait until "
                f"it ends; if it has ended, remove the file: rm '{path}'"
            ) from None
        return None


def _may_run(holder: dict[str, Any]) -> bool:
    """Whether the process may still run; a process on another host may."""
    pid = holder.get("pid")
    if holder.get("host") != socket.gethostname() or not isinstance(pid, int):
        return bool(holder)
    if pid == os.getpid():
        return False
    if sys.platform == "win32":
        return True  # `os.kill` would end the process there.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _read(path: pathlib.Path) -> dict[str, Any]:
    """Returns the process named in the file; empty for a file without a process."""
    try:
        content = json.loads(path.read_bytes() or b"{}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return {"pid": None, "host": socket.gethostname()}
    return content if isinstance(content, dict) else {}


def _write(path: pathlib.Path) -> dict[str, Any]:
    """Writes this process to the file as the lock's holder; returns the content."""
    content = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.datetime.now().isoformat(" ", "seconds"),
    }
    # It is written in place, since a new file would not be locked. Closing the file
    # sends its content to a server.
    with path.open("r+b") as file:
        file.truncate()
        file.write((json.dumps(content) + "\n").encode())
    return content


def _locked(path: pathlib.Path, holder: dict[str, Any]) -> str:
    if holder.get("pid") is None:
        return f"locked by another process (file {path})"
    return log.plain(
        f"locked by process {holder['pid']} on host {holder.get('host')} since "
        f"{holder.get('since')} (file {path})"
    )


def _identity(path: pathlib.Path) -> tuple[int, int] | None:
    try:
        return _number(os.stat(path))
    except OSError:
        return None


def _number(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _key(directory: pathlib.Path) -> str:
    return os.path.realpath(directory)


@atexit.register
def _release_all() -> None:
    for held in list(_held.values()):
        held.release()


def _after_fork() -> None:
    # Another thread may have held this lock when this process was forked.
    global _mutex
    _mutex = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
