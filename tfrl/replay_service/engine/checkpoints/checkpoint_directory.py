"""Prepares the directory of a server's checkpoints when the server starts."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile

from tfrl.replay_service.engine.checkpoints import checkpoint_files
from tfrl.system import locked_directories


def prepare(path: str) -> None:
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
        pattern = f".*{checkpoint_files.UNFINISHED}"
        for unfinished in locked_directories.abandoned(path, pattern):
            shutil.rmtree(unfinished, ignore_errors=True)
