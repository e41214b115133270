"""Checkpointers, which define where a server writes and finds its checkpoints.

These objects only describe the place; the server process does the work. A checkpoint is
a directory named after its time. When a new checkpoint is complete, the checkpoints
before the previous one are deleted. A server starts from the previous checkpoint, with
a warning, if the newest one is damaged.
"""

from __future__ import annotations

import abc
import os
import shutil
import weakref
from collections.abc import Mapping
from typing import Any

from tfrl.system import locked_directories

TEMPORARY = "tfrl-checkpoints-"  # The beginning of the names of temporary directories.


class CheckpointerBase(metaclass=abc.ABCMeta):
    """Base class of objects that tell a `Server` where its checkpoints are."""

    @abc.abstractmethod
    def to_config(self) -> dict[str, Any]:
        """Returns the checkpointer as a JSON object, for `from_config`."""


class DefaultCheckpointer(CheckpointerBase):
    """Keeps checkpoints in a directory of the server's host.

    Attributes:
      path: The directory that holds the checkpoints.
      group: See the constructor.
      fallback_checkpoint_path: See the constructor.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        group: str = "",
        fallback_checkpoint_path: str | os.PathLike[str] | None = None,
    ):
        """Creates a checkpointer.

        Args:
          path: The directory that holds the checkpoints. A server creates it when it
            starts.
          group: Has no effect; it is accepted for compatibility with Reverb.
          fallback_checkpoint_path: A checkpoint to start from while `path` holds none,
            such as a result of `Client.checkpoint`.

        Raises:
          ValueError: If `path` is empty.
        """
        self.path = os.fspath(path)
        self.group = group
        self.fallback_checkpoint_path = (
            None
            if fallback_checkpoint_path is None
            else os.fspath(fallback_checkpoint_path)
        )
        if not self.path:
            raise ValueError(
                "path: got '', expected a directory; pass the directory for the "
                "checkpoints, or use TempDirCheckpointer()."
            )

    def to_config(self) -> dict[str, Any]:
        """Returns the checkpointer as a JSON object, for `from_config`."""
        fallback = self.fallback_checkpoint_path
        return {
            "path": os.path.abspath(self.path),
            "group": self.group,
            "fallback": None if fallback is None else os.path.abspath(fallback),
        }


class TempDirCheckpointer(DefaultCheckpointer):
    """Keeps checkpoints in a temporary directory.

    The directory is deleted when neither a server nor other code refers to this object
    any more, or when the process ends.
    """

    def __init__(self) -> None:
        """Creates the directory."""
        path, self._lock = locked_directories.make_temporary(TEMPORARY)
        super().__init__(path)
        weakref.finalize(self, _delete, self.path, os.getpid())


def default_checkpointer(group: str | None = None) -> CheckpointerBase:
    """Returns the default checkpointer of a server.

    Args:
      group: Has no effect; it is accepted for compatibility with Reverb.
    """
    del group
    return TempDirCheckpointer()


def from_config(config: Mapping[str, Any] | None) -> DefaultCheckpointer:
    """Returns the checkpointer that a configuration describes.

    Args:
      config: A result of `to_config`; None for a temporary directory.

    Raises:
      ValueError: If the configuration has no path.
    """
    if config is None:
        return TempDirCheckpointer()
    return DefaultCheckpointer(
        config.get("path") or "", config.get("group") or "", config.get("fallback")
    )


def _delete(path: str, process: int) -> None:
    # A forked process must not delete the directory of its parent.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
