"""The base class of the observers that write frames to a replay server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tree

from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory as trajectory_lib
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl import replay_service

FIRST, LAST = int(ts.StepType.FIRST), int(ts.StepType.LAST)


class ReverbObserver:
    """Base of observers that append frames to a writer and detect ends of episodes.

    Subclasses decide which frames become an item.
    """

    def __init__(
        self,
        py_client: replay_service.Client,
        table_name: str | Sequence[str],
        num_frames: int,
        priority: float,
    ) -> None:
        """Creates the observer and opens its writer.

        Args:
          py_client: The client of the server.
          table_name: The table, or tables, that receive the items.
          num_frames: The number of frames that the writer keeps for an item.
          priority: The priority of every item.

        Raises:
          ValueError: If there is no table, or the priority is not a number of at
            least 0.
        """
        self._table_names = _checked_names(table_name)
        self._num_frames = num_frames
        number_checks.check_number("priority", priority, 0, remedy="1 is usual")
        self._priority = float(priority)
        self._py_client = py_client
        self._writer: Any = None
        # The state of the running episode.
        self._cached_steps = 0
        self._next_step_type: int | None = None
        self.open()

    @property
    def py_client(self) -> replay_service.Client:
        """The client whose server holds the tables."""
        return self._py_client

    def get_table_signature(self) -> Any:
        """Returns the signature of the (first) table: a nest of specs, or None."""
        return self._py_client.server_info()[self._table_names[0]].signature

    def __call__(self, trajectory: trajectory_lib.Trajectory) -> None:
        """Takes the next frame.

        Args:
          trajectory: A `Trajectory` of arrays, numbers or eager tensors, without any
            outer dimension.

        Raises:
          ValueError: If the frames are batched, do not match the table's signature, or
            the observer is closed.
          TypeError: If `trajectory` is not a `Trajectory`, or holds symbolic tensors of
            a graph.
        """
        step_type, next_step_type = self._step_types(trajectory)
        expected = self._next_step_type
        # After a boundary there is no episode to end, unless the boundary raised an
        # error.
        if expected is not None and (step_type != expected or expected == FIRST):
            self._end_at_cut()
        self._next_step_type = next_step_type
        self._observe(trajectory)
        if step_type == LAST and next_step_type != LAST:
            self._end_at_boundary()

    def flush(self, timeout_ms: int | None = None) -> None:
        """Waits until the server has all items that were written so far.

        Items are written when they are complete, but sent in the background. While the
        table's rate limiter blocks new items, this call waits.

        Args:
          timeout_ms: The number of milliseconds to wait; None for no limit.

        Raises:
          DeadlineExceededError: If time is up first. The items are inserted later.
        """
        self._open_writer().flush(timeout_ms=timeout_ms)

    def open(self) -> None:
        """Opens the writer; does nothing if the writer is already open."""
        if self._writer is None:
            self._writer = self._py_client.trajectory_writer(
                num_keep_alive_refs=self._num_frames + 1, validate_items=True
            )
            self._forget()

    def close(self) -> None:
        """Closes the writer after it has sent all items; `open` opens a new writer.

        Frames that belong to no item are dropped.
        """
        if self._writer is not None:
            self._writer.end_episode()
            self._writer.close()
            self._writer = None
            self._forget()

    def _observe(self, trajectory: trajectory_lib.Trajectory) -> None:
        raise NotImplementedError

    def _end_at_boundary(self) -> None:
        raise NotImplementedError

    def _end_at_cut(self) -> None:
        """Ends an episode that the next frame does not continue."""
        raise NotImplementedError

    def _append(self, trajectory: trajectory_lib.Trajectory) -> None:
        self._open_writer().append(trajectory)
        self._cached_steps += 1

    def _write_item(self, num_frames: int) -> None:
        """Creates, in each table, an item of the last `num_frames` frames."""
        writer = self._open_writer()
        # This is a flat list, which writers send; rebuilding the nest would take
        # longer.
        columns = [column[-num_frames:] for column in tree.flatten(writer.history)]
        for name in self._table_names:
            writer.create_item(table=name, trajectory=columns, priority=self._priority)

    def _end_episode(self) -> None:
        """Drops the cached frames, after the server has received their items."""
        self._forget()
        if self._writer is None:
            self.open()
        else:
            self._writer.end_episode()

    def _forget(self) -> None:
        self._cached_steps = 0
        self._next_step_type = None

    def _open_writer(self) -> Any:
        if self._writer is None:
            raise ValueError(
                f"{type(self).__name__}: could not obtain a writer, since the observer "
                "was closed; call its open() first."
            )
        return self._writer

    def _step_types(self, trajectory: trajectory_lib.Trajectory) -> tuple[int, int]:
        name = type(self).__name__
        try:
            pair = trajectory.step_type, trajectory.next_step_type
        except AttributeError:
            raise TypeError(
                f"{name}: got a {type(trajectory).__name__}, expected a Trajectory; "
                "make it an observer (not a transition observer) of the driver."
            ) from None
        shape = tuple(getattr(pair[0], "shape", ()))
        if shape:
            raise ValueError(
                f"{name}: trajectory.step_type has shape {shape}, expected (), one "
                "frame of one environment; give each environment of a batch an "
                "observer of its own, with tfrl.utils.batched_observer_unbatching."
            )
        try:
            return int(pair[0]), int(pair[1])
        except TypeError:
            raise TypeError(
                f"{name}: trajectory.step_type is a {type(pair[0]).__name__}, expected "
                "a number; in a graph, call the observer by tf.numpy_function."
            ) from None


def _checked_names(table_name: str | Sequence[str]) -> list[str]:
    names = [table_name] if isinstance(table_name, str) else list(table_name)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(
            f"table_name: got {table_name!r}, expected the name of a table, or several."
        )
    return names
