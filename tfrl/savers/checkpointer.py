"""Acme's checkpointer: saves a dictionary of objects every few minutes."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals
from tfrl.savers import checkpoint_names, saveable, unbuilt, whole_checkpoints
from tfrl.system import paths, throttle

_FIVE_DAYS = int(datetime.timedelta(days=5).total_seconds())


class Checkpointer:
    """Saves objects at most every `time_delta_minutes`; restores them when created.

    It decides when to save, and in which directory. A `whole_checkpoints.Checkpointer`
    writes and reads the checkpoints, so they are complete or absent, and never hold
    weights that are not finite. Take that class if the program has a train step and
    decides itself when to save.

    ```python
    checkpointer = Checkpointer({"model": model, "optimizer": optimizer})
    for _ in range(num_steps):
        ...
        checkpointer.save()
    ```
    """

    def __init__(
        self,
        objects_to_save: Mapping[str, Any],
        *,
        directory: str | os.PathLike[str] = paths.DEFAULT_DIRECTORY,
        subdirectory: str = "default",
        time_delta_minutes: float = 10.0,
        enable_checkpointing: bool = True,
        add_uid: bool = True,
        max_to_keep: int = 1,
        checkpoint_ttl_seconds: int = _FIVE_DAYS,
        keep_checkpoint_every_n_hours: float | None = None,
    ) -> None:
        """Restores the newest checkpoint, if there is one.

        Args:
          objects_to_save: The objects by name: objects that TensorFlow can track,
            `Saveable`s and `TFSaveable`s. A Keras layer without variables is saved once
            it has them.
          directory: The directory above `<unique_id>/checkpoints/<subdirectory>`.
          subdirectory: The name of the directory of the checkpoints.
          time_delta_minutes: The least number of minutes between two checkpoints.
          enable_checkpointing: Whether anything is saved and restored.
          add_uid: Whether `system.paths.unique_id()` is part of the directory. A
            process that is started again finds its checkpoints only if the identifier
            is the same: set the environment variable `TFRL_ID`, or pass False.
          max_to_keep: The number of newest checkpoints to keep.
          checkpoint_ttl_seconds: Has no effect: nothing is deleted by age. It is
            accepted because Acme has this argument, where it has no effect either.
          keep_checkpoint_every_n_hours: The hours after which a further checkpoint is
            kept for ever; None keeps only the newest.

        Raises:
          CheckpointError: If there are checkpoints, but none can be used, or their
            variables have other shapes or dtypes.
          ValueError: If there is a checkpoint, but a network in `objects_to_save` has
            no variables yet, or `time_delta_minutes` is negative, or TensorFlow would
            interpret the directory as a pattern.
        """
        del checkpoint_ttl_seconds
        paths.refuse_patterns("directory", directory)
        paths.refuse_patterns("subdirectory", subdirectory)
        self._throttle = throttle.Throttle(60 * time_delta_minutes)
        self._checkpointer: whole_checkpoints.Checkpointer | None = None
        if not enable_checkpointing:
            return
        self._parts = {
            name: saveable.as_trackable(part) for name, part in objects_to_save.items()
        }
        self._checkpointer = whole_checkpoints.Checkpointer(
            paths.process_path(directory, "checkpoints", subdirectory, add_uid=add_uid),
            max_to_keep,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            **self._parts,
        )
        if self._checkpointer.checkpoint_exists:
            self._check_networks_built()

    @property
    def directory(self) -> str | None:
        """The directory of the checkpoints; None if checkpointing is disabled."""
        return None if self._checkpointer is None else self._checkpointer.directory

    def save(self, force: bool = False) -> bool:
        """Saves a checkpoint if `time_delta_minutes` have passed since the last.

        The first call always saves.

        Args:
          force: Whether to save in any case.

        Returns:
          Whether a checkpoint was saved; False if checkpointing is disabled.

        Raises:
          CheckpointError: If variables that training changes are not finite; nothing
            was saved.
        """
        if self._checkpointer is None or not (force or self._throttle.is_due()):
            return False
        unbuilt.warn_of(self._parts)
        earlier = checkpoint_names.newest_first(self._checkpointer.directory)
        number = checkpoint_names.number_of(earlier[0]) + 1 if earlier else 1
        self._checkpointer.save(number)
        self._throttle.restart()
        return True

    def restore(self) -> None:
        """Restores the newest checkpoint, if there is one.

        Raises:
          CheckpointError: If there are checkpoints, but none can be used, or their
            variables have other shapes or dtypes.
        """
        if self._checkpointer is not None:
            self._checkpointer.initialize_or_restore()

    def _check_networks_built(self) -> None:
        """Raises an error if a network would not get its weights from the checkpoint.

        TensorFlow restores the variables of a Keras layer when the layer is built. It
        cannot do so for a network, whose variables are not named by its attributes.
        """
        for name, part in self._parts.items():
            if any(not network.built for network in _networks(part)):
                raise ValueError(
                    f"objects_to_save: {name!r} has a network without variables, "
                    f"expected one that takes its weights from {self.directory}; call "
                    "tfrl.acme.tf.utils.create_variables(network, [spec]) first, or "
                    "give the network its input spec."
                )


def _networks(part: Any) -> Iterator[Any]:
    for child in tf.train.TrackableView(part).descendants():
        if isinstance(child, internals.TracksMore):
            yield child
