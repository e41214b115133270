"""Writes and reads checkpoints as directories of files, without pickling.

A directory is written under a temporary name. Its last file, DONE, holds the size and
the checksum of every other file. Then the directory is renamed to the time (UTC). So a
directory with a final name was complete when it was renamed. The checksums show whether
it was damaged later.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tfrl.system import files, locked_directories, log

FORMAT = 1

_LOGGER = logging.getLogger("tfrl.replay_service")
_DONE, _META = "DONE", "meta.json"
_TIME = "%Y-%m-%dT%H-%M-%S.%f"  # Without colons, which Windows does not allow in names.
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}")
UNFINISHED = ".writing"
_STALE = 3600.0  # Seconds after which an unfinished checkpoint is deleted.


class CheckpointWriter:
    """Writes one checkpoint: a context manager that cleans up after a failure."""

    def __init__(self, path: str | os.PathLike[str]):
        """Creates the checkpoint's directory.

        Args:
          path: The directory that holds the checkpoints. It is created if necessary.

        Raises:
          OSError: If the directory cannot be written to.
        """
        self._root = Path(os.path.abspath(path))
        self._root.mkdir(parents=True, exist_ok=True)
        now = datetime.datetime.now(datetime.UTC)
        self._target = self._root / now.strftime(_TIME)
        self._directory = self._root / f".{self._target.name}{UNFINISHED}"
        self._lock = locked_directories.make(str(self._directory))
        self._files: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> CheckpointWriter:
        """Returns the writer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Deletes the directory unless it was renamed."""
        shutil.rmtree(self._directory, ignore_errors=True)
        if self._lock is not None:
            self._lock.release()

    def add_array(self, name: str, array: np.ndarray) -> None:
        """Writes an array of numbers."""
        with _SummedFile(self._directory / f"{name}.npy") as file:
            np.lib.format.write_array(file, array, allow_pickle=False)
        self._files[f"{name}.npy"] = file.sums

    def add_rows(
        self, name: str, shape: tuple[int, int], chunks: Iterable[np.ndarray]
    ) -> None:
        """Writes an array of bytes in chunks.

        Args:
          name: The name of the array.
          shape: The shape of the whole array.
          chunks: The rows of the array in order, uint8 `[n, shape[1]]` per chunk.
        """
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        with _SummedFile(self._directory / f"{name}.npy") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for chunk in chunks:
                file.write(chunk.data)
        self._files[f"{name}.npy"] = file.sums

    def finish(self, meta: dict[str, Any], before: str | None = None) -> str:
        """Writes `meta`, renames the checkpoint and deletes all others but `before`.

        Args:
          meta: The JSON object that `read_meta` returns.
          before: The path of the checkpoint to keep, to start from if this one is
            damaged later, or None.

        Returns:
          The absolute path of the checkpoint.
        """
        self._add_json(_META, {"format": FORMAT, **meta})
        self._add_json(_DONE, {"files": self._files})
        _flush_directory(self._directory)
        self._directory.rename(self._target)
        _flush_directory(self._root)
        kept = {self._target, None if before is None else Path(before)}
        for name in os.listdir(self._root):
            other = self._root / name
            if (_NAME.fullmatch(name) and other not in kept) or _is_stale(other):
                shutil.rmtree(other, ignore_errors=True)
        return str(self._target)

    def _add_json(self, name: str, value: dict[str, Any]) -> None:
        with _SummedFile(self._directory / name) as file:
            file.write(json.dumps(value).encode())
        self._files[name] = file.sums


class _SummedFile:
    """A file that is being written, with its current size and checksum."""

    def __init__(self, path: Path):
        self._file: BinaryIO = open(path, "xb")  # noqa: SIM115
        self._size = self._sum = 0

    def __enter__(self) -> _SummedFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._file:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())

    @property
    def sums(self) -> tuple[int, int]:
        return self._size, self._sum

    def write(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        if not view.nbytes:
            return
        view = view.cast("B")
        self._size += len(view)
        self._sum = zlib.crc32(view, self._sum)
        self._file.write(view)


def prepare_directory(path: str) -> None:
    """Creates the directory, and checks that checkpoints can be written to it.

    Args:
      path: The directory that holds the checkpoints.

    Raises:
      OSError: If no checkpoint could be written.
    """
    try:
        if os.path.exists(path) and not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, "It is a file, not a directory")
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".check-", dir=path):
            pass
    except OSError as error:
        raise OSError(
            error.errno,
            f"checkpointer, checkpoint_path: cannot write checkpoints to {path!r}: "
            f"{error.strerror}. Give a directory that this user can write to.",
        ) from error


def remove_unfinished(path: str) -> None:
    """Deletes checkpoints whose server ended while writing them.

    Args:
      path: The directory that holds the checkpoints.
    """
    with contextlib.suppress(OSError):
        pattern = f".*{UNFINISHED}"
        for unfinished in locked_directories.abandoned(path, pattern):
            shutil.rmtree(unfinished, ignore_errors=True)


def latest(path: str | os.PathLike[str]) -> Path | None:
    """Returns the newest complete checkpoint in a directory; None without checkpoints.

    Logs a warning for each newer checkpoint that is not complete.

    Args:
      path: The directory that holds the checkpoints.

    Raises:
      ValueError: If there are checkpoints, but no complete checkpoint.
    """
    root = Path(os.path.abspath(path))
    if not root.is_dir():
        return None
    refused: dict[Path, str] = {}
    found = None
    names = sorted(os.listdir(root), key=lambda name: name.lstrip("."), reverse=True)
    for directory in (root / name for name in names):
        if _NAME.fullmatch(directory.name):
            problem = _problem(directory)
            if problem is None:
                found = directory
                break
            refused[directory] = problem
        elif directory.name.endswith(UNFINISHED):
            _LOGGER.warning(
                "The checkpoint %s is not used: its server ended while writing it.",
                log.plain(directory),
            )
    if refused and found is None:
        raise ValueError(_no_whole_one(refused))
    for directory, problem in refused.items():
        _LOGGER.warning(
            "The checkpoint %s is refused: %s. The one before it is used instead, %s; "
            "later changes are lost.",
            directory,
            log.plain(problem),
            found,
        )
    return found


def verified(path: str | os.PathLike[str]) -> Path:
    """Returns the path of a checkpoint after checking that it is complete.

    Raises:
      ValueError: If the checkpoint is not complete.
    """
    directory = Path(os.path.abspath(path))
    problem = _problem(directory)
    if problem is not None:
        raise ValueError(_no_whole_one({directory: problem}))
    return directory


def read_meta(directory: Path) -> dict[str, Any]:
    """Returns the JSON object that was passed to `CheckpointWriter.finish`.

    Raises:
      ValueError: If the checkpoint has another format.
    """
    meta: dict[str, Any] = json.loads((directory / _META).read_bytes())
    found = meta.get("format") if isinstance(meta, dict) else None
    if found != FORMAT:
        raise ValueError(
            f"The checkpoint {directory} has format {found}, expected {FORMAT}. "
            "Start the server with the version of tfrl that wrote it."
        )
    return meta


def read_array(directory: Path, name: str) -> np.ndarray:
    """Returns an array of a checkpoint, which is read from disk on access."""
    path = directory / f"{name}.npy"
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return array.view(np.ndarray)


def _problem(directory: Path) -> str | None:
    """Returns why a checkpoint is not complete, or None if it is complete."""
    # It may be from somebody else, and lead to files of another directory.
    if directory.is_symlink() or any(map(Path.is_symlink, directory.glob("*"))):
        return "it is a link, or has links"
    try:
        sums = json.loads((directory / _DONE).read_bytes())["files"]
        expected = {str(name): (int(s[0]), int(s[1])) for name, s in sums.items()}
    except FileNotFoundError:
        return "its file DONE, which is written last, is missing"
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        OSError,
        TypeError,
        ValueError,
    ) as error:
        return f"its file DONE cannot be read ({error!r})"
    for name, (size, expected_sum) in expected.items():
        # The file DONE may be from somebody else, and a pipe would never end.
        if name != os.path.basename(name) or not (directory / name).is_file():
            return f"its file {name} is missing, or no file of its directory"
        try:
            with open(directory / name, "rb") as file:
                there = os.fstat(file.fileno()).st_size
                if there != size:
                    return f"its file {name} has {there} bytes, expected {size}"
                if files.crc32(file) != expected_sum:
                    return f"its file {name} has a wrong checksum"
        except OSError as error:
            return f"its file {name} cannot be read ({error.strerror})"
    return None


def _no_whole_one(refused: dict[Path, str]) -> str:
    reasons = "; ".join(
        f"{directory}: {log.plain(problem)}" for directory, problem in refused.items()
    )
    return (
        f"checkpointer: no checkpoint to start from is complete. {reasons}. Restore a "
        "copy of one, or move these directories away to start with empty tables."
    )


def _is_stale(directory: Path) -> bool:
    """Returns whether a directory is an old unfinished checkpoint."""
    if not directory.name.endswith(UNFINISHED):
        return False
    try:
        return time.time() - directory.stat().st_mtime > _STALE
    except OSError:
        return False


def _flush_directory(directory: Path) -> None:
    if sys.platform == "win32":
        return
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
