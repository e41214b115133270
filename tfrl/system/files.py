"""Writes files in folders that may be somebody else's, and follows no link there.

A folder from somebody else may have links where tfrl writes, which lead to files of the
user's own. All that tfrl writes to the folder of a run goes through this module: a file
is written under a name that nobody can know before, and then takes its place, so that a
link there is replaced; and nothing is appended to a link. The folder itself may be one.

>>> import pathlib, tempfile
>>> from tfrl.system import files
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder, "text")
...     path.symlink_to("elsewhere")
...     files.write_text(path, "whole")
...     path.is_symlink(), path.read_text()
(False, 'whole')
"""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

# The beginning of the names of folders whose content is not complete.
UNFINISHED = ".new-"
# A disk is full, a quota is used up, or a file would exceed the limit on its size.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CHUNK = 4 << 20  # Bytes that `crc32` reads together.


@contextlib.contextmanager
def beside(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """Yields a path of the same name in a new folder, which is removed at the end.

    The folder is in that of `path`, which is made if it is missing, so that a rename
    moves what was written.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=UNFINISHED, dir=path.parent, ignore_cleanup_errors=True
    ) as folder:
        yield pathlib.Path(folder, path.name)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """Yields the path of a new file, which replaces `path` unless there is an error."""
    with beside(path) as new:
        yield new
        os.replace(new, path)


def write_text(path: str | os.PathLike[str], text: str, errors: str = "strict") -> None:
    """Replaces a file by one with a text in UTF-8."""
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8", errors=errors)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Replaces a file by one with some bytes."""
    with replacing(path) as new:
        new.write_bytes(content)


def open_to_append(path: str | os.PathLike[str], mode: str = "a", **how: Any) -> Any:
    """Opens a file for appending; makes it if it is missing.

    Args:
      path: The file. Its other names, which are hard links, keep what it holds now.
      mode: "a" or "ab".
      **how: Further arguments of `open`.

    Raises:
      OSError: It is a link, or no file, or cannot be written.
    """
    try:
        check_plain(path)
    except OSError as error:
        raise OSError(f"{os.fspath(path)}: {error}.") from None
    if os.path.exists(path) and os.stat(path).st_nlink > 1:
        write_bytes(path, pathlib.Path(path).read_bytes())
    return open(path, mode, opener=open_plain, **how)


def open_plain(path: str, flags: int) -> int:
    """Opens a file as `os.open`, unless it is a link."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def check_plain(path: str | os.PathLike[str]) -> None:
    """Raises an OSError for a link, and for what is no file: a pipe never ends."""
    if os.path.islink(path):
        raise OSError(
            f"it is a link, to {os.readlink(path)!r}, and not followed, since it may "
            "be somebody else's; put the file itself there"
        )
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError("it is no file")


def bears(path: str | os.PathLike[str], mark: bytes) -> bool:
    """Whether a file, which is no link, has a mark of its writer at one of its ends."""
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        first = file.read(300)
        file.seek(max(os.path.getsize(path) - 300, 0))
        return mark in first or mark in file.read()


def check_replaceable(
    argument: str, path: str | os.PathLike[str], *, is_own: bool, overwrite: bool
) -> None:
    """Checks that something may be written where a user names a path.

    What tfrl has not written is never replaced, and what it has, only if the user says
    so.

    Args:
      argument: The argument that gave the path.
      path: The path.
      is_own: Whether what is there bears a mark of tfrl's.
      overwrite: Whether the user says so.

    Raises:
      ValueError: It may not be.
    """
    if not os.path.lexists(path) or (is_own and overwrite):
        return
    told = "something that tfrl did not write, and keeps; give another"
    if is_own:
        told = "one already; give overwrite=True or --overwrite to replace it"
    raise ValueError(f"{argument}: got {os.fspath(path)!r}, where there is {told}.")


def remove(path: str | os.PathLike[str]) -> None:
    """Removes a file, a folder, or a link but not what it leads to, if it is there."""
    path = pathlib.Path(path)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def is_disk_full(error: OSError) -> bool:
    """Whether the error means that there is no space left."""
    return error.errno in DISK_FULL


def crc32(file: BinaryIO, size: int | None = None) -> int:
    """Returns the CRC-32 of the rest of an open file.

    Args:
      file: The file, from which this function reads.
      size: The number of bytes to read; None for all.
    """
    value = 0
    while chunk := file.read(_CHUNK if size is None else min(_CHUNK, size)):
        value = zlib.crc32(chunk, value)
        if size is not None:
            size -= len(chunk)
    return value
