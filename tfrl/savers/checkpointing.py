"""Saves checkpoints, and restores them whole or not at all.

An interrupted save leaves no checkpoint. A damaged checkpoint is skipped, with a loud
warning, and the last good one is restored. A directory whose checkpoints are all
unreadable is an error: training never restarts silently.
"""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import tensorflow as tf

_NAME = "ckpt"


class CheckpointError(RuntimeError):
    """Raised if a directory holds checkpoints, but none of them can be read."""


class Checkpointer:
    """Saves objects to `ckpt_dir`; restores the latest good checkpoint when created."""

    def __init__(
        self, ckpt_dir: str | os.PathLike, max_to_keep: int = 20, **objects: Any
    ) -> None:
        """Restores the latest good checkpoint, if there is one.

        Args:
          ckpt_dir: The directory, created if missing.
          max_to_keep: How many of the newest checkpoints are kept.
          **objects: The objects to save, by name: networks, optimizers, agents,
            buffers, variables, metrics, or anything else that TensorFlow can track.

        Raises:
          CheckpointError: If there are checkpoints, but none can be read.
        """
        self._directory = os.fspath(ckpt_dir)
        os.makedirs(self._directory, exist_ok=True)
        self._checkpoint = tf.train.Checkpoint(**objects)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, self._directory, max_to_keep, checkpoint_name=_NAME
        )
        self._restored_path = restore_latest(self._checkpoint, self._directory)

    @property
    def checkpoint_exists(self) -> bool:
        """Whether there was a checkpoint to restore at construction."""
        return self._restored_path is not None

    @property
    def restored_path(self) -> str | None:
        """The path of the checkpoint that was restored last, or None."""
        return self._restored_path

    @property
    def manager(self) -> tf.train.CheckpointManager:
        """TensorFlow's manager of the directory."""
        return self._manager

    def initialize_or_restore(self) -> str | None:
        """Restores the latest good checkpoint, if there is one, and returns its path.

        Raises:
          CheckpointError: If there are checkpoints, but none can be read.
        """
        self._restored_path = restore_latest(self._checkpoint, self._directory)
        return self._restored_path

    def save(self, global_step: int | tf.Variable | tf.Tensor) -> str:
        """Saves a checkpoint numbered `global_step` and returns its path."""
        return self._manager.save(checkpoint_number=int(global_step))


def restore_latest(
    checkpoint: tf.train.Checkpoint, directory: str | os.PathLike
) -> str | None:
    """Restores the newest checkpoint in `directory` that can be read whole.

    Checkpoints are found by the names of their files, so a lost or damaged `checkpoint`
    state file does no harm.

    Returns:
      The restored path, or None if the directory holds no checkpoint.

    Raises:
      CheckpointError: If it holds checkpoints, but none can be read.
    """
    failures = []
    for path in _checkpoints_newest_first(os.fspath(directory)):
        try:
            _check_readable(path)
            checkpoint.restore(path).expect_partial()
        except (tf.errors.OpError, ValueError, TypeError, OSError, EOFError) as error:
            failures.append(f"  {path}: {type(error).__name__}: {_first_line(error)}")
            continue
        if failures:
            warnings.warn(
                "CHECKPOINT DAMAGED: these could not be read:\n"
                + "\n".join(failures)
                + f"\nGoing on from the last good one, {path}.",
                RuntimeWarning,
                stacklevel=3,
            )
        return path
    if failures:
        raise CheckpointError(
            f"checkpoint directory {os.fspath(directory)!r}: none of its "
            f"{len(failures)} checkpoints can be read:\n"
            + "\n".join(failures)
            + "\nRestore the files from a copy, or use another directory."
        )
    return None


def _checkpoints_newest_first(directory: str) -> list[str]:
    """Returns the prefixes `directory/ckpt-N` that have any file, newest first."""
    numbers = set()
    for name in os.listdir(directory):
        match = re.match(rf"{_NAME}-(\d+)\.(index|data-\d+-of-\d+)$", name)
        if match:
            numbers.add(int(match[1]))
    return [
        os.path.join(directory, f"{_NAME}-{n}") for n in sorted(numbers, reverse=True)
    ]


def _check_readable(path: str) -> None:
    """Reads every tensor once; TensorFlow compares each with its checksum."""
    reader = tf.train.load_checkpoint(path)
    for name in reader.get_variable_to_shape_map():
        reader.get_tensor(name)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]
