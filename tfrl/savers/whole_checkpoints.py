"""Saves checkpoints, and restores them completely or not at all.

A save that was killed, or found no space on the disk, leaves no checkpoint, and weights
that are not finite are not saved. A checkpoint that is damaged or holds such weights is
skipped, with a loud warning, and the last good one is restored. A directory whose
checkpoints are all bad is an error, and so is a checkpoint whose variables have other
shapes: training never restarts silently.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection
from typing import Any

import tensorflow as tf

from tfrl.savers import checkpoint_files, checkpoint_names, finite
from tfrl.system import log, paths

# A message lists at most this many variables.
_MOST_LINES = 8


class CheckpointError(RuntimeError):
    """Raised if a checkpoint cannot be saved or restored.

    None of a directory's checkpoints can be used, or they belong to a program with
    other variables, or the variables to save are not finite.
    """

    def __init__(self, text: str) -> None:
        """Stores the text, parts of which may be from the files; see `log.plain`."""
        super().__init__(log.plain(text))


class Checkpointer:
    """Saves objects to `ckpt_dir`; restores the latest good checkpoint when created."""

    def __init__(
        self,
        ckpt_dir: str | os.PathLike,
        max_to_keep: int | None = 20,
        *,
        keep_checkpoint_every_n_hours: float | None = None,
        **objects: Any,
    ) -> None:
        """Restores the latest good checkpoint, if there is one.

        Args:
          ckpt_dir: The directory, created if missing.
          max_to_keep: The number of newest checkpoints to keep; None keeps all.
          keep_checkpoint_every_n_hours: The hours after which a further checkpoint is
            kept for ever; None keeps only the newest.
          **objects: The objects to save, by name: networks, optimizers, agents,
            buffers, variables, metrics, or anything else that TensorFlow can track.
            The trainable variables, and all variables of agents, Keras layers and
            optimizers, must be finite when they are saved, except for those that are
            not finite now, such as a best return of minus infinity.

        Raises:
          CheckpointError: If there are checkpoints, but none can be used, or their
            variables have other shapes or dtypes, or TensorFlow would leave out weights
            of a Keras layer.
          ValueError: If TensorFlow would interpret the directory as a pattern.
        """
        paths.refuse_patterns("ckpt_dir", ckpt_dir)
        self._directory = os.fspath(ckpt_dir)
        os.makedirs(self._directory, exist_ok=True)
        checkpoint_files.repair_state(self._directory)
        self._checkpoint = tf.train.Checkpoint(**objects)
        self._check_all_saved()
        self._manager = tf.train.CheckpointManager(
            self._checkpoint,
            self._directory,
            max_to_keep,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            checkpoint_name=checkpoint_names.NAME,
        )
        self._unchecked = frozenset(_not_finite(self._checkpoint))
        self._restored_path = restore_latest(
            self._checkpoint, self._directory, unchecked=self._unchecked
        )

    @property
    def checkpoint_exists(self) -> bool:
        """Whether there was a checkpoint to restore at construction."""
        return self._restored_path is not None

    @property
    def restored_path(self) -> str | None:
        """The path of the checkpoint that was restored last, or None."""
        return self._restored_path

    @property
    def directory(self) -> str:
        """The directory of the checkpoints."""
        return self._directory

    @property
    def manager(self) -> tf.train.CheckpointManager:
        """TensorFlow's manager of the directory."""
        return self._manager

    def initialize_or_restore(self) -> str | None:
        """Restores the latest good checkpoint, if there is one, and returns its path.

        Raises:
          CheckpointError: If there are checkpoints, but none can be used, or their
            variables have other shapes or dtypes.
        """
        self._restored_path = restore_latest(
            self._checkpoint, self._directory, unchecked=self._unchecked
        )
        return self._restored_path

    def check_finite(self) -> None:
        """Checks the variables that `save` checks, without saving.

        Raises:
          CheckpointError: If variables that training changes are not finite.
        """
        check_finite(
            self._checkpoint,
            f"checkpoint directory {self._directory!r}: nothing was saved, because "
            "these variables hold",
            f"{self._last_good()} ",
            self._unchecked,
        )

    def save(self, global_step: int | tf.Variable | tf.Tensor) -> str:
        """Saves a checkpoint numbered `global_step` and returns its path.

        Raises:
          CheckpointError: If variables that training changes are not finite, or
            TensorFlow would leave out weights of a Keras layer; nothing was saved.
        """
        self._check_all_saved()
        self.check_finite()
        # It goes through a tensor, because int() refuses the variables of several
        # replicas.
        number = int(tf.convert_to_tensor(global_step))
        try:
            return self._manager.save(checkpoint_number=number)
        except Exception:
            checkpoint_files.remove_unfinished(self._directory)
            raise

    def _check_all_saved(self) -> None:
        unsaved = checkpoint_files.unsaved_weights(self._checkpoint)
        lines = [
            f"  layer {name!r}: {', '.join(weights)}"
            for name, weights in unsaved.items()
        ]
        if lines:
            raise CheckpointError(
                f"checkpoint directory {self._directory!r}: these weights would be in "
                f"no checkpoint:\n{shortened(lines)}\nTensorFlow does not look into "
                "the lists and dictionaries of a Keras layer; make each layer in them "
                "a separate attribute, or derive from tfrl.networks.Network "
                "instead of keras.Layer."
            )

    def _last_good(self) -> str:
        newest = checkpoint_names.newest_first(self._directory)
        if not newest:
            return "There is no earlier checkpoint."
        return f"Resume from the last checkpoint, {newest[0]}."


def check_finite(
    checkpoint: tf.train.Checkpoint,
    what: str = "these variables hold",
    advice: str = "",
    unchecked: Collection[str] = (),
) -> None:
    """Checks that the variables that training changes are finite.

    Args:
      checkpoint: The objects with the variables.
      what: The beginning of the error.
      advice: The beginning of its remedy.
      unchecked: The keys of variables that need not be finite.

    Raises:
      CheckpointError: They are not.
    """
    bad = [
        f"  {checkpoint_files.label(key, variable)}"
        for key, variable in _not_finite(checkpoint).items()
        if key not in unchecked
    ]
    if bad:
        raise CheckpointError(
            f"{what} NaN or infinity:\n{shortened(bad)}\n{advice}Lower the learning "
            "rate, or look for observations and rewards that are huge or not finite."
        )


def _not_finite(checkpoint: tf.train.Checkpoint) -> dict[str, Any]:
    """Returns the trained variables that are not finite now, by key."""
    trained = checkpoint_files.trained_variables(checkpoint)
    return {key: x for key, x in trained.items() if not finite.is_finite(x)}


def restore_latest(
    checkpoint: tf.train.Checkpoint,
    directory: str | os.PathLike,
    *,
    unchecked: Collection[str] = (),
) -> str | None:
    """Restores the newest good checkpoint in `directory`.

    A good checkpoint can be read completely, and the variables in it that training
    changes are finite. Checkpoints are found by the names of their files, so a lost or
    damaged `checkpoint` state file has no effect.

    Args:
      checkpoint: The objects to restore.
      directory: The directory of the checkpoints.
      unchecked: The keys of variables that need not be finite.

    Returns:
      The restored path, or None if the directory holds no checkpoint.

    Raises:
      CheckpointError: If the directory holds checkpoints, but none is good, or the
        variables of the newest good one have other shapes or dtypes.
    """
    checked = set(checkpoint_files.trained_variables(checkpoint)).difference(unchecked)

    def restore(path: str, reader: Any) -> None:
        _check_same_variables(path, reader, checkpoint)
        checkpoint.restore(path).expect_partial()

    return use_latest(directory, restore, checked)


def use_latest(
    directory: str | os.PathLike,
    use: Callable[[str, Any], None],
    checked: Collection[str],
) -> str | None:
    """Calls a function with the newest good checkpoint in `directory`.

    Args:
      directory: The directory of the checkpoints.
      use: Takes the checkpoint's path and its `tf.train.load_checkpoint` reader. If it
        fails to read the checkpoint, the next older one is used.
      checked: The keys of the variables that must be finite in a good checkpoint.

    Returns:
      The path, or None if the directory holds no checkpoint.

    Raises:
      CheckpointError: If the directory holds checkpoints, but none is good, or `use`
        raises it.
    """
    failures = []
    for path in checkpoint_names.newest_first(os.fspath(directory)):
        try:
            reader = checkpoint_files.read_whole(path)
            bad = checkpoint_files.not_finite(reader, sorted(checked))
            if bad:
                failures.append(
                    f"  {path}: its weights are lost, {len(bad)} of {len(checked)} "
                    f"variables hold NaN or infinity, such as {bad[0]}"
                )
                continue
            use(path, reader)
        except CheckpointError:
            raise
        except checkpoint_files.READING_ERRORS as error:
            if not checkpoint_files.is_unfinished(path):
                failures.append(checkpoint_files.describe_failure(path, error))
            continue
        if failures:
            warnings.warn(
                "CHECKPOINT DAMAGED: these cannot be used:\n"
                + log.plain("\n".join(failures))
                + f"\nGoing on from the last good one, {path}.",
                RuntimeWarning,
                stacklevel=4,
            )
        return path
    if failures:
        raise CheckpointError(
            f"checkpoint directory {os.fspath(directory)!r}: none of its "
            f"{len(failures)} checkpoints can be used:\n"
            + "\n".join(failures)
            + "\nRestore the files from a copy, or use another directory."
        )
    return None


def _check_same_variables(
    path: str, reader: Any, checkpoint: tf.train.Checkpoint
) -> None:
    """Compares the variables with the saved variables.

    Raises a CheckpointError if shapes or dtypes differ, and warns of variables that
    were not saved.
    """
    changed, absent = checkpoint_files.compare(reader, checkpoint)
    if changed:
        raise CheckpointError(
            f"checkpoint {path}: its files are whole, but it was saved with another "
            "configuration, such as another network or another capacity of the replay "
            f"buffer:\n{shortened(changed)}\n"
            "Use the configuration with which it was saved, or another directory."
        )
    if absent:
        warnings.warn(
            f"CHECKPOINT OF OTHER OBJECTS: {path} does not hold these variables, which "
            f"keep their initial values:\n{shortened(absent)}\n"
            "Use the configuration with which it was saved, if this is not on purpose.",
            RuntimeWarning,
            stacklevel=6,
        )


def shortened(lines: list[str]) -> str:
    """Returns the first lines, and the number of further lines, as one text."""
    more = len(lines) - _MOST_LINES
    if more > 0:
        lines = [*lines[:_MOST_LINES], f"  and {more} more"]
    return "\n".join(lines)
