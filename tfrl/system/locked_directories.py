"""Directories locked by a process, so that later processes know whether it has ended.

The system releases the lock of a process that is killed, although processes that it
forked may still run (see `file_lock`). A directory has a different name until it is
locked. So a directory with its final name and without a lock is abandoned.

>>> import tempfile
>>> from tfrl.system import locked_directories
>>> with tempfile.TemporaryDirectory() as parent:
...     path, lock = locked_directories.make_temporary("example-", parent)
...     locked_directories.abandoned(parent, "example-*")
...     lock.release()  # As the system does when the process ends.
...     [path] == locked_directories.abandoned(parent, "example-*")
[]
True
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator

from tfrl.system import file_lock

_NEW = "new-"
_OF_PROCESSES = "tfrl-processes-"
_MARK = ".temporary"  # A file in the directories of `make_temporary`.


def lock(path: str) -> file_lock.FileLock:
    """Locks a directory until the lock is released or this process ends.

    Args:
      path: The directory.

    Raises:
      OSError: If another process holds the lock, or the directory cannot be locked.
    """
    if sys.platform == "win32":
        raise OSError("Directories cannot be locked on Windows.")
    return file_lock.FileLock(
        os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    )


def make(path: str) -> file_lock.FileLock | None:
    """Creates a directory and locks it; returns None if it cannot be locked.

    Args:
      path: The path of the directory.

    Raises:
      OSError: If the directory cannot be created.
    """
    new = f"{path}.new"
    os.mkdir(new)
    return _lock_and_rename(new, path)


def make_temporary(
    prefix: str, parent: str | None = None
) -> tuple[str, file_lock.FileLock | None]:
    """Creates a directory that only this user can enter, and locks it.

    Args:
      prefix: The beginning of its name.
      parent: The directory in which it is made; None for the system's temporary
        directory.

    Returns:
      The directory's path, and its lock, or None if it cannot be locked.

    Raises:
      OSError: If the directory cannot be created.
    """
    new = tempfile.mkdtemp(prefix=_NEW + prefix, dir=parent)
    parent, name = os.path.split(new)
    path = os.path.join(parent, name.removeprefix(_NEW))
    held = _lock_and_rename(new, path)
    with open(os.path.join(path, _MARK), "x", encoding="utf-8") as file:
        file.write("This directory is deleted when the process that made it ends.\n")
    return path, held


def remove_temporary(prefix: str, parent: str | None = None) -> None:
    """Deletes this user's directories of `make_temporary` whose processes have ended.

    Args:
      prefix: The beginning of their names.
      parent: The directory above them; None for the system's temporary directory.
    """
    with contextlib.suppress(OSError):
        for path in abandoned(parent or tempfile.gettempdir(), f"{prefix}*"):
            if os.path.isfile(os.path.join(path, _MARK)):
                shutil.rmtree(path, ignore_errors=True)


def abandoned(parent: str, pattern: str) -> list[str]:
    """Returns the paths of this user's directories that no process holds locked.

    Directories that cannot be locked do not count.

    Args:
      parent: The directory to look in.
      pattern: The pattern of the names, as in a shell.
    """
    found = []
    for name in sorted(os.listdir(parent)):
        path = os.path.join(parent, name)
        if fnmatch.fnmatchcase(name, pattern) and _is_own_directory(path):
            with contextlib.suppress(OSError):
                lock(path).release()
                found.append(path)
    return found


def _lock_and_rename(new: str, path: str) -> file_lock.FileLock | None:
    held = None
    with contextlib.suppress(OSError):
        held = lock(new)
    try:
        os.rename(new, path)
    except BaseException:
        os.rmdir(new)
        raise
    return held


def _is_own_directory(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return is_own and stat.S_ISDIR(status.st_mode)


@contextlib.contextmanager
def temporary() -> Iterator[str]:
    """Makes a temporary folder for a group of processes, deleted with the context.

    AutoGraph writes a file for each function that it converts, and a killed process
    leaves these files in the system's temporary folder, unless `use_temporary` gives
    it this one. Folders whose makers were killed are deleted, too.

    Yields:
      The path of the folder.
    """
    remove_temporary(_OF_PROCESSES)
    folder, lock = make_temporary(_OF_PROCESSES)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            lock.release()


def use_temporary(folder: str) -> None:
    """Puts the temporary files of this process, and of its children, into a folder."""
    tempfile.tempdir = os.environ["TMPDIR"] = folder
