"""The files of a program: which there are, their text, and how they are replaced."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import time
import tokenize
from collections.abc import Iterator

from tfrl.system import files as whole_files

# In bytes: larger files of code were written by programs. Notebooks hold pictures.
_LARGEST = {".py": 2_000_000, ".gin": 2_000_000, ".ipynb": 50_000_000}
_SUFFIXES = tuple(_LARGEST)
_SKIPPED = {"__pycache__", "node_modules", "site-packages"}


class SkippedError(ValueError):
    """A file that is left alone, and why."""


@dataclasses.dataclass(frozen=True)
class Source:
    """A file that was read.

    Attributes:
      path: Its path.
      data: Its bytes.
      encoding: Its encoding.
    """

    path: pathlib.Path
    data: bytes
    encoding: str

    @property
    def text(self) -> str:
        """The text, with the file's own line ends."""
        return self.data.decode(self.encoding)


def found(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields the files at a path that can be moved, and links, which are not followed.

    Args:
      path: A file, or a folder: hidden folders, caches and environments are left out.
    """
    if path.is_symlink() or not path.is_dir():
        yield path
        return
    for folder, folders, files in os.walk(path):
        here = pathlib.Path(folder)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = sorted(
            name
            for name in set(folders) - set(links) - _SKIPPED
            if name[0] != "." and not (here / name / "pyvenv.cfg").exists()
        )
        for name in sorted([*files, *links]):
            if name.endswith(_SUFFIXES) or name in links:
                yield here / name


def read(path: pathlib.Path) -> Source:
    """Reads a file.

    Raises:
      SkippedError: It is a link, too large, binary or of another kind.
    """
    if path.is_symlink():
        raise SkippedError("a link, which is not followed")
    if path.suffix not in _SUFFIXES:
        raise SkippedError(f"not one of {', '.join(_SUFFIXES)}")
    try:
        if not path.is_file():
            raise SkippedError("no file")
        if path.stat().st_size > (largest := _LARGEST[path.suffix]):
            raise SkippedError(f"larger than {largest // 1_000_000} MB")
        data = path.read_bytes()
    except OSError as error:
        raise SkippedError(error.strerror or str(error)) from None
    if b"\0" in data:
        raise SkippedError("binary")
    try:
        encoding = "utf-8"
        if path.suffix == ".py":
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        source = Source(path, data, encoding)
        if source.text.encode(encoding) != data:
            raise SkippedError(f"does not keep its bytes in {encoding}")
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise SkippedError(f"no text: {error}") from None
    return source


def replace(source: Source, text: str, copies: pathlib.Path) -> pathlib.Path | None:
    """Replaces the text of a file by a rename.

    Args:
      source: The file as it was read.
      text: The new text.
      copies: The folder for a copy, unless git has the file as it is.

    Returns:
      Where the copy is, or None without one.

    Raises:
      SkippedError: It has changed since, or cannot be written.
    """
    path = source.path
    try:
        data = text.encode(source.encoding)
        if path.is_symlink() or path.read_bytes() != source.data:
            raise SkippedError(
                "it has changed since it was read; run the command again"
            )
        copy = None
        if not _is_in_git(source):
            copy = copies / path.absolute().relative_to(path.absolute().anchor)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
        with whole_files.replacing(path) as new:
            with new.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            shutil.copymode(path, new)
    except (OSError, UnicodeError) as error:
        raise SkippedError(f"not written: {error}") from None
    return copy


def copies_folder() -> pathlib.Path:
    """Returns the folder for the copies of this call, outside of any program."""
    base = os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local" / "state"
    now = time.strftime("%Y-%m-%d_%H-%M-%S")
    return pathlib.Path(base) / "tfrl" / "migrate" / f"{now}_{os.getpid()}"


def _is_in_git(source: Source) -> bool:
    """Whether the last commit has a file with these bytes.

    They are compared here, since git would run the filters that a folder names.
    """
    path = source.path.absolute()
    git = ["git", "-c", "core.fsmonitor=false", "-C", str(path.parent)]
    words = ["ls-tree", "HEAD", "--", path.name]
    try:
        told = subprocess.run([*git, *words], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    if told.returncode or not told.stdout:
        return False
    known = told.stdout.split()[2].decode()
    content = b"blob %d\0" % len(source.data) + source.data
    kind = "sha1" if len(known) == 40 else "sha256"
    return hashlib.new(kind, content, usedforsecurity=False).hexdigest() == known
