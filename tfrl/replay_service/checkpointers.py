"""Where a server writes its checkpoints, and from where it starts.

These say it; the server, which is another process, does it. A checkpoint is a directory
named after its time. There is one at a time: once a new one is complete, the one before
it is deleted.
"""

from __future__ import annotations

import abc
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from typing import Any


class CheckpointerBase(metaclass=abc.ABCMeta):
    """What a `Server` takes as its `checkpointer`."""

    @abc.abstractmethod
    def to_config(self) -> dict[str, Any]:
        """Returns this checkpointer in terms of JSON, for `from_config`."""


class DefaultCheckpointer(CheckpointerBase):
    """Checkpoints in a directory of this host, which the server starts from again.

    Attributes:
      path: The directory that holds the checkpoints.
      group: As given.
      fallback_checkpoint_path: As given.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        group: str = "",
        fallback_checkpoint_path: str | os.PathLike[str] | None = None,
    ):
        """Names the directory.

        Args:
          path: The directory that holds the checkpoints. It is made when there is one.
          group: Taken for the sake of code written for Reverb; has no effect.
          fallback_checkpoint_path: A checkpoint, such as `Client.checkpoint` returns,
            to start from while `path` holds none.

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
                "path: '' is no directory; give the one that is to hold the "
                "checkpoints, or use TempDirCheckpointer()."
            )

    def to_config(self) -> dict[str, Any]:
        """Returns this checkpointer in terms of JSON, for `from_config`."""
        fallback = self.fallback_checkpoint_path
        return {
            "path": os.path.abspath(self.path),
            "group": self.group,
            "fallback": None if fallback is None else os.path.abspath(fallback),
        }


class TempDirCheckpointer(DefaultCheckpointer):
    """Checkpoints in a temporary directory.

    It is deleted when this object, which the server refers to, is no longer used, at
    the latest when the process ends.
    """

    def __init__(self) -> None:
        """Makes the directory."""
        super().__init__(tempfile.mkdtemp(prefix="tfrl-checkpoints-"))
        weakref.finalize(self, _delete, self.path, os.getpid())


def default_checkpointer(group: str | None = None) -> CheckpointerBase:
    """Returns what a server uses that is given no checkpointer.

    Args:
      group: Taken for the sake of code written for Reverb; has no effect.
    """
    del group
    return TempDirCheckpointer()


def from_config(config: Mapping[str, Any] | None) -> DefaultCheckpointer:
    """Returns the checkpointer of a configuration; None stands for a temporary one.

    Raises:
      ValueError: If the configuration names no path.
    """
    if config is None:
        return TempDirCheckpointer()
    return DefaultCheckpointer(
        config.get("path") or "", config.get("group") or "", config.get("fallback")
    )


def _delete(path: str, process: int) -> None:
    # A fork of the process must leave it alone.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
