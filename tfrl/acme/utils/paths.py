"""Directories for the outputs of a run."""

from __future__ import annotations

import os
import shutil

from tfrl.system import paths
from tfrl.system.paths import process_path as process_path


def get_unique_id() -> tuple[str, ...]:
    """Returns this run's identifier, which the environment variable `TFRL_ID` sets."""
    return (paths.unique_id(),)


def rmdir(path: str | os.PathLike[str]) -> None:
    """Deletes a directory and everything in it."""
    shutil.rmtree(path)
