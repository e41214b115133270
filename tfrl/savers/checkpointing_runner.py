"""Runs an object, and saves its checkpoints."""

from __future__ import annotations

import itertools
import time
from typing import Any

from tfrl.savers import checkpointer
from tfrl.system import interrupts


class CheckpointingRunner:
    """Calls `step` of an object, and saves the object every `time_delta_minutes`.

    An object without `step`, which works on its own threads, is only saved. Methods and
    attributes that the runner lacks are looked up in the object.
    """

    def __init__(
        self,
        wrapped: Any,
        key: str = "wrapped",
        *,
        time_delta_minutes: float = 30.0,
        **kwargs: Any,
    ) -> None:
        """Restores the object from the newest checkpoint, if there is one.

        Args:
          wrapped: A `Saveable`, a `TFSaveable`, or an object that TensorFlow can track.
          key: The object's name in the checkpoints.
          time_delta_minutes: The least number of minutes between two checkpoints.
          **kwargs: Further arguments of `Checkpointer`, such as `directory`.

        Raises:
          CheckpointError: If there are checkpoints, but none can be used, or their
            variables have other shapes or dtypes.
        """
        self._wrapped = wrapped
        self._checkpointer = checkpointer.Checkpointer(
            {key: wrapped}, time_delta_minutes=time_delta_minutes, **kwargs
        )

    def step(self) -> None:
        """Calls the object's `step`, or waits a second; saves a checkpoint if due."""
        if hasattr(self._wrapped, "step"):
            self._wrapped.step()
        else:
            time.sleep(1)
        self._checkpointer.save()

    def run(self, num_steps: int | None = None) -> None:
        """Calls `step` until a signal arrives; then saves a checkpoint.

        The signals are SIGINT, SIGTERM and SIGHUP. A second SIGINT or SIGTERM ends the
        program without saving. Only the main thread receives signals.

        Args:
          num_steps: The number of steps after which to save and return; None runs until
            a signal arrives.
        """
        steps = itertools.count() if num_steps is None else range(num_steps)
        with interrupts.requested(interrupts.SIGNALS, lambda: "a step") as is_requested:
            for _ in steps:
                self.step()
                if is_requested():
                    break
            self._checkpointer.save(force=True)

    def get_directory(self) -> str | None:
        """Returns the directory of the checkpoints."""
        return self._checkpointer.directory

    def __getattr__(self, name: str) -> Any:
        # The runner's own attributes are not looked up; they are missing while it is
        # copied.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._wrapped, name)
