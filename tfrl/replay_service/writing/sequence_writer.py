"""Reverb's older `Writer`, whose items consist of all leaves of the last steps."""

from __future__ import annotations

import logging
import sys
from typing import Any, Self

import numpy as np
import tree

from tfrl.replay_service.trajectory_writer import TrajectoryWriter

_LOGGER = logging.getLogger("tfrl.replay_service")


class Writer:
    """Appends steps and creates items from the last steps; see `Client.writer`.

    with client.writer(max_sequence_length=2) as writer:
        writer.append([1.0])
        writer.append([2.0])
        writer.create_item("table", num_timesteps=2, priority=1.0)

    Only one thread may use a writer. A writer must be closed, for example with a `with`
    statement.
    """

    def __init__(
        self,
        writer: TrajectoryWriter,
        max_sequence_length: int,
        max_in_flight_items: int,
    ):
        """Creates a writer; `Client.writer` calls this.

        Args:
          writer: The trajectory writer that stores and sends the steps.
          max_sequence_length: The maximum number of steps of an item.
          max_in_flight_items: The maximum number of items that are not confirmed.
        """
        self._writer = writer
        self._max_sequence_length = max_sequence_length
        self._max_in_flight_items = max_in_flight_items
        self._num_leaves: int | None = None
        self._closed = False

    def __enter__(self) -> Self:
        """Returns the writer."""
        if self._closed:
            raise ValueError("Cannot reuse already closed Writer")
        return self

    def __exit__(self, *_: object) -> None:
        """Flushes all items and closes the writer."""
        self.flush()
        self.close()

    def __del__(self) -> None:
        """Warns of a writer that was not closed.

        Its `TrajectoryWriter`, which is deleted next, sends the remaining items and
        waits briefly. The garbage collector must not wait for a server that is gone.
        """
        if not getattr(self, "_closed", True) and not sys.is_finalizing():
            _LOGGER.warning("Writer-object deleted without calling .close explicitly.")

    def __repr__(self) -> str:
        """Returns a readable description."""
        return (
            f"Writer(max_timesteps={self._max_sequence_length}, "
            f"max_in_flight_items={self._max_in_flight_items}), closed: {self._closed}"
        )

    def append(self, data: Any) -> None:
        """Adds a step.

        Args:
          data: A nest of arrays and numbers. Only its flattened leaves are used.

        Raises:
          ValueError: If the number, the dtypes or the shapes of leaves have changed.
        """
        leaves = tree.flatten(data)
        self._check_number(leaves)
        self._writer.append(leaves)

    def append_sequence(self, sequence: Any) -> None:
        """Adds several steps.

        Args:
          sequence: A nest of arrays `[T, ...]` with the same T.

        Raises:
          ValueError: If the arrays differ in T, or a step is invalid; see `append`.
        """
        leaves = [np.asarray(value) for value in tree.flatten(sequence)]
        if len({array.shape[:1] for array in leaves}) != 1 or not leaves[0].ndim:
            raise ValueError(
                "AppendSequence called with tensors of non equal batch dimension: got "
                f"the shapes {[array.shape for array in leaves]}."
            )
        self._check_number(leaves)
        for step in zip(*leaves, strict=True):
            self._writer.append(list(step))

    def create_item(self, table: str, num_timesteps: int, priority: float) -> None:
        """Creates an item from the last `num_timesteps` steps.

        Waits if too many items are not confirmed yet.

        Args:
          table: The name of the table.
          num_timesteps: The number of steps.
          priority: The priority of the item.

        Raises:
          ValueError: If there are fewer steps, or an argument is invalid; see
            `TrajectoryWriter.create_item`.
        """
        if num_timesteps < 1:
            raise ValueError(
                f"num_timesteps ({num_timesteps}) must be a positive integer"
            )
        available = min(self._writer.episode_steps, self._max_sequence_length)
        if num_timesteps > available:
            raise ValueError(
                "Argument `num_timesteps` is larger than number of buffered timesteps. "
                f"Got {num_timesteps}, there are {available}."
            )
        trajectory = [column[-num_timesteps:] for column in self._writer.history]
        self._writer.create_item(table, priority, trajectory)
        self._writer.flush(self._max_in_flight_items)

    def flush(self) -> None:
        """Waits until all items are in their tables."""
        self._writer.flush()

    def close(self, retry_on_unavailable: bool = True) -> None:
        """Waits until all items are in their tables, and closes the connection.

        Args:
          retry_on_unavailable: Whether to wait for an unavailable server, for as long
            as the client keeps trying.

        Raises:
          ValueError: If the writer is closed already.
        """
        if self._closed:
            raise ValueError("close() has already been called on Writer.")
        self._closed = True
        try:
            if retry_on_unavailable:
                self._writer.flush()
        finally:
            self._writer.close()

    def _check_number(self, leaves: list[Any]) -> None:
        if self._num_leaves not in (None, len(leaves)):
            raise ValueError(
                "Number of tensors per timestep was inconsistent. Previously it was "
                f"{self._num_leaves}, but is now {len(leaves)}."
            )
        self._num_leaves = len(leaves)
