"""Compiled programs as files in the user's cache, for later processes.

The folder `programs` of the cache, which only its user can enter, has a folder for each
kind of process that can share programs. The name of a file begins with the checksum of
its content, so that a program and its checksum appear, and are replaced, at once. Of
what is in these folders, only files of this user with the right checksum are read. All
else is deleted, since nobody has a reason to put it there.

Reading and writing fail silently: without a cache, programs are only compiled again.

>>> import pathlib, tempfile
>>> from tfrl.compilation import program_store
>>> with tempfile.TemporaryDirectory() as cache:
...     root = pathlib.Path(cache, "programs")
...     store = program_store.ProgramStore(root, "this processor", print)
...     store.write("loop", "program.pb", b"instructions")
...     store.read("loop"), program_store.usage(root)
({'program.pb': b'instructions'}, Usage(number=1, size=12))
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

VARIABLE = "TFRL_CACHE_DIR"
MEGABYTE = 1_000_000
DEFAULT_LIMIT = 500 * MEGABYTE

_OFF = ("", "0", "off")
_PROGRAMS, _LIMIT = "programs", "limit"
_NEW = ".new-"  # Files that a process is writing, or has left unfinished.
_UNFINISHED = 3600.0  # Seconds after which such a file is taken to be left.
# The most that a process reads for a group of programs, to bound time and memory.
_MOST_READ = 64 * MEGABYTE
_ENTRY = re.compile(r"(?P<checksum>[0-9a-f]{64})-(?P<group>[0-9a-f]{16})-(?P<name>.+)")
_KIND = re.compile(r"[0-9a-f]{16}")  # The name of a folder of programs.


class NoPlaceError(RuntimeError):
    """There is no folder for the cache; the text says why."""


class Usage(NamedTuple):
    """How many programs are stored, and their size in bytes."""

    number: int
    size: int


def find_root(environment: Mapping[str, str]) -> pathlib.Path:
    """Returns the path of the folder of programs, which may not exist yet.

    Args:
      environment: The variables of the environment.

    Raises:
      NoPlaceError: The cache is turned off, or it would belong to another user.
    """
    given = environment.get(VARIABLE)
    if given in _OFF:
        raise NoPlaceError(f"{VARIABLE}={given} turns it off")
    try:
        if given is not None:
            return pathlib.Path(given).expanduser().absolute() / _PROGRAMS
        return _default_folder(environment) / _PROGRAMS
    except (OSError, RuntimeError) as error:
        raise NoPlaceError(f"{error}; set {VARIABLE} to a folder") from None


def _default_folder(environment: Mapping[str, str]) -> pathlib.Path:
    """Returns the folder of the cache; raises an OSError if it cannot be one."""
    base = pathlib.Path(environment.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():  # The specification says to ignore a relative path.
        existing = next(path for path in (base, *base.parents) if path.exists())
    else:
        existing, base = pathlib.Path.home(), pathlib.Path.home() / ".cache"
    # As after `sudo` with the home of the user, who could not use what root makes.
    if not _is_own(existing.stat()):
        raise OSError(f"{existing} belongs to another user")
    return base / "tfrl"


def obstacle(root: pathlib.Path) -> str | None:
    """Returns why this process does not use the programs of a folder, or None."""
    try:
        status = root.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{root}: {error.strerror}"
    if not stat.S_ISDIR(status.st_mode):
        return f"{root} is not a folder"
    if not _is_own(status):
        return f"{root} belongs to another user"
    if _others_may_write(status):
        return f"other users may write to {root}; run chmod 700 on it"
    return None


def usage(root: pathlib.Path) -> Usage:
    """Returns how many programs there are, of all kinds, and their size."""
    found = _entries(root)
    return Usage(len(found), sum(entry.size for entry in found))


def empty(root: pathlib.Path) -> None:
    """Deletes all programs, which running processes may go on to store.

    Raises:
      OSError: Some cannot be deleted.
    """
    for folder in _folders(root):
        for path in folder.glob("*"):
            _remove(path)
        # Another process may have written a program meanwhile, or removed the folder.
        with contextlib.suppress(OSError):
            folder.rmdir()


def limit(root: pathlib.Path) -> int:
    """Returns the number of bytes that programs may take."""
    try:
        return int(_read_own(root / _LIMIT)) * MEGABYTE
    except (OSError, ValueError):
        return DEFAULT_LIMIT


def set_limit(root: pathlib.Path, megabytes: int) -> None:
    """Sets the limit of all later processes, and deletes programs beyond it.

    Raises:
      OSError: The limit cannot be stored.
    """
    _make(root)
    _write_at_once(root / _LIMIT, f"{megabytes}\n".encode("ascii"))
    _trim(root)


class ProgramStore:
    """The programs of one kind of process."""

    def __init__(
        self, root: pathlib.Path, kind: str, tell: Callable[[str], None]
    ) -> None:
        """Makes nothing yet.

        Args:
          root: The folder that `find_root` returns.
          kind: All that programs depend on and that their names do not tell: releases,
            processor, flags of the compiler. Programs of another kind are not seen.
          tell: Called with a line when files are deleted that do not belong here.
        """
        self._root = root
        self._folder = root / _digest(kind)
        self._tell = tell

    def read(self, group: str) -> dict[str, bytes]:
        """Returns the contents of a group's programs, by name.

        If they are many, it returns those that were used last.
        """
        found: dict[str, bytes] = {}
        room = _MOST_READ
        with contextlib.suppress(OSError):
            if not self._is_safe():
                return {}
            for path, entry in self._listed(_digest(group)):
                content = self._content(path, entry["checksum"])
                if content is None:
                    continue
                room -= len(content)
                if room < 0:
                    break
                found.setdefault(entry["name"], content)
                with contextlib.suppress(OSError):
                    os.utime(path)
        return found

    def write(self, group: str, name: str, content: bytes) -> None:
        """Stores a program, and deletes the oldest ones beyond the limit.

        Args:
          group: The group with which the program is read.
          name: Its name in the group; an earlier program of this name is replaced.
          content: Its bytes.
        """
        with contextlib.suppress(OSError):
            _make(self._root)
            if not self._is_safe():
                return
            self._folder.mkdir(mode=0o700, exist_ok=True)
            entry = f"{_digest(group)}-{name}"
            new = self._folder / f"{hashlib.sha256(content).hexdigest()}-{entry}"
            _write_at_once(new, content)
            for path in self._folder.glob(f"*-{entry}"):
                if path != new:
                    path.unlink(missing_ok=True)
            _trim(self._root)

    def _is_safe(self) -> bool:
        """Whether the folder can be used; deletes what others may have written."""
        if obstacle(self._root) is not None or not self._root.exists():
            return False
        folder = self._folder
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            self._delete(folder, "not a folder")
        elif folder.exists() and _others_may_write(folder.stat()):
            for path in folder.iterdir():
                self._delete(path, "in a folder in which other users may write")
            folder.chmod(0o700)
        return True

    def _listed(self, group: str) -> list[tuple[pathlib.Path, re.Match[str]]]:
        """Returns the files of a group and the parts of their names, newest first."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            for item in os.scandir(self._folder):
                path = pathlib.Path(item.path)
                entry = _ENTRY.fullmatch(item.name)
                if entry is None:
                    self._delete_unknown(path)
                elif entry["group"] == group:
                    age = item.stat(follow_symlinks=False).st_mtime_ns
                    found.append((age, path, entry))
        found.sort(key=lambda each: each[0], reverse=True)
        return [(path, entry) for _, path, entry in found]

    def _content(self, path: pathlib.Path, checksum: str) -> bytes | None:
        """Returns a file's content; deletes a file that should not be read."""
        try:
            content = _read_own(path)
        except FileNotFoundError:
            return None  # Another process has deleted it.
        except PermissionError as error:
            self._delete(path, str(error))
            return None
        except OSError:
            self._delete(path, "not a file")
            return None
        if hashlib.sha256(content).hexdigest() != checksum:
            self._delete(path, "damaged")
            return None
        return content

    def _delete_unknown(self, path: pathlib.Path) -> None:
        if not path.name.startswith(_NEW):
            self._delete(path, "unknown")
        elif time.time() - path.lstat().st_mtime > _UNFINISHED:
            _remove(path)

    def _delete(self, path: pathlib.Path, reason: str) -> None:
        try:
            _remove(path)
        except OSError as error:
            self._tell(f"Cache of compiled programs: cannot delete {path}: {error}")
            return
        self._tell(f"Cache of compiled programs: deleted {path}, which was {reason}.")


class _Entry(NamedTuple):
    age: int
    size: int
    path: pathlib.Path


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_own(status: os.stat_result) -> bool:
    return sys.platform == "win32" or status.st_uid == os.getuid()


def _others_may_write(status: os.stat_result) -> bool:
    # On Windows these bits say nothing.
    return sys.platform != "win32" and bool(
        status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _read_own(path: pathlib.Path) -> bytes:
    """Returns the content of a file that only this user can have written.

    Raises:
      PermissionError: Another user may have written it.
      OSError: It is not a file, or cannot be read.
    """
    # A pipe is not waited for.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a file")
        if not _is_own(status):
            raise PermissionError("of another user")
        if _others_may_write(status):
            raise PermissionError("open to changes by other users")
        return file.read()


def _remove(path: pathlib.Path) -> None:
    """Deletes a file, link or folder, unless another process has deleted it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _make(root: pathlib.Path) -> None:
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    root.mkdir(mode=0o700, exist_ok=True)


def _write_at_once(path: pathlib.Path, content: bytes) -> None:
    """Writes a file that others see whole or not at all."""
    descriptor, new = tempfile.mkstemp(prefix=_NEW, dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


def _folders(root: pathlib.Path) -> Iterator[pathlib.Path]:
    with contextlib.suppress(OSError):
        for item in os.scandir(root):
            # The user may keep folders here, too.
            if _KIND.fullmatch(item.name) and item.is_dir(follow_symlinks=False):
                yield root / item.name


def _entries(root: pathlib.Path) -> list[_Entry]:
    """Returns the stored programs of all kinds of processes."""
    found = []
    for folder in _folders(root):
        with contextlib.suppress(OSError):
            for item in os.scandir(folder):
                status = item.stat(follow_symlinks=False)
                found.append(
                    _Entry(status.st_mtime_ns, status.st_size, folder / item.name)
                )
    return found


def _trim(root: pathlib.Path) -> None:
    """Deletes the programs that were not used for the longest time, to the limit."""
    found = sorted(_entries(root))
    excess = sum(entry.size for entry in found) - limit(root)
    for entry in found:
        if excess <= 0:
            return
        excess -= entry.size
        with contextlib.suppress(OSError):
            entry.path.unlink()
            entry.path.parent.rmdir()  # Fails unless it was the last one.
