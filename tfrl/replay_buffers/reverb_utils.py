"""Observers that write a driver's trajectories to tables of a replay server.

Each observer takes one `Trajectory` frame of one environment at a time, of arrays or of
eager tensors without outer dimensions, as `PyDriver` passes them. A batched environment
needs one observer for each row; `BatchedObserverUnbatching` of `tfrl.utils` passes the
rows to them.

An episode ends at its boundary, the frame that leads from LAST to the next FIRST. It
also ends where two successive frames do not belong together, because a driver was
restarted in mid-episode. No item crosses such a cut, except for the items of
`ReverbTrajectorySequenceObserver`, which may cross all cuts and boundaries.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tree

from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory as trajectory_lib
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl import replay_service

_FIRST, _LAST = int(ts.StepType.FIRST), int(ts.StepType.LAST)

_logger = logging.getLogger(__name__)


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
        if expected is not None and (step_type != expected or expected == _FIRST):
            self._end_at_cut()
        self._next_step_type = next_step_type
        self._observe(trajectory)
        if step_type == _LAST and next_step_type != _LAST:
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


class ReverbAddEpisodeObserver(ReverbObserver):
    """Writes every whole episode, with its boundary, as one item `[T, ...]`.

    The items are as long as the episodes. An episode that was cut off, because its
    driver was restarted in the middle of it, is dropped with a warning. An episode that
    has ended, but whose boundary was not observed before the next episode or a `flush`,
    is written without the boundary. The frames of the running episode are kept until it
    ends, or until `reset()`, which writes the frames so far.

    Batches of items with several lengths cannot be stacked: sample with
    `sample_batch_size=1`, or pad the items with `Dataset.padded_batch`.
    """

    def __init__(
        self,
        py_client: replay_service.Client,
        table_name: str | Sequence[str],
        max_sequence_length: int,
        priority: float = 1,
        bypass_partial_episodes: bool = False,
    ) -> None:
        """Opens a writer.

        Args:
          py_client: The client of the replay server.
          table_name: The table, or several tables, to write to. Several tables share
            the frames.
          max_sequence_length: The largest number of frames in an episode, including its
            boundary; the writer keeps this many frames.
          priority: The priority of new items.
          bypass_partial_episodes: Whether to drop and log a longer episode; if False, a
            longer episode raises a ValueError.

        Raises:
          ValueError: If `max_sequence_length` is not positive, the priority is not a
            finite number of at least 0, or no table is given.
        """
        number_checks.check_sizes(max_sequence_length=max_sequence_length)
        self._bypass_partial_episodes = bypass_partial_episodes
        self._has_overflowed = False
        super().__init__(py_client, table_name, max_sequence_length, priority)

    def update_priority(self, priority: float) -> None:
        """Sets the priority of the items from now on.

        Raises:
          ValueError: If `priority` is not a finite number of 0 or more.
        """
        number_checks.check_number("priority", priority, 0, remedy="1 is usual")
        self._priority = float(priority)

    def flush(self, timeout_ms: int | None = None) -> None:
        """Waits until the server has all episodes that have ended.

        An episode whose boundary was not observed yet is written without the boundary.

        Args:
          timeout_ms: The number of milliseconds to wait; None for no limit.

        Raises:
          DeadlineExceededError: If time is up first. The items are inserted later.
        """
        if self._next_step_type == _LAST:
            self.reset()
        super().flush(timeout_ms)

    def reset(self, write_cached_steps: bool = True) -> None:
        """Ends the episode here; this is not needed between whole episodes.

        Args:
          write_cached_steps: Whether to write the frames of the running episode as an
            item; False drops them.
        """
        if write_cached_steps and self._cached_steps and not self._has_overflowed:
            self._write_item(self._cached_steps)
        self._end_episode()

    def _observe(self, trajectory: trajectory_lib.Trajectory) -> None:
        if self._cached_steps >= self._num_frames and not self._has_overflowed:
            self._overflow()
        if not self._has_overflowed:
            self._append(trajectory)

    def _end_at_boundary(self) -> None:
        # A boundary alone is not an episode. The episode was written earlier, without
        # the boundary.
        self.reset(write_cached_steps=self._cached_steps > 1)

    def _end_at_cut(self) -> None:
        is_whole = self._next_step_type == _LAST
        if not is_whole and not self._has_overflowed:
            _logger.warning(
                "%s: dropped %d frame(s) of an episode that was cut off, since the "
                "next frame does not follow it. Run the driver with max_episodes "
                "to collect whole episodes, or continue from the time step that it "
                "returned; reset() keeps the frames of an unfinished one.",
                type(self).__name__,
                self._cached_steps,
            )
        self.reset(write_cached_steps=is_whole)

    def _overflow(self) -> None:
        self._has_overflowed = True
        text = (
            f"{type(self).__name__}: an episode is longer than "
            f"max_sequence_length={self._num_frames} frames, its boundary counted"
        )
        if not self._bypass_partial_episodes:
            raise ValueError(
                f"{text}. Raise max_sequence_length, limit the episodes with a "
                "TimeLimit, or set bypass_partial_episodes=True to drop longer ones."
            )
        _logger.error("%s; it is dropped. Raise max_sequence_length.", text)

    def _forget(self) -> None:
        super()._forget()
        self._has_overflowed = False


class ReverbAddTrajectoryObserver(ReverbObserver):
    """Writes overlapping sequences of an episode, each an item `[T, ...]`.

    The first item is written when an episode has `sequence_length` (`T`) frames,
    including its boundary. After that, an item is written every `stride_length` frames.
    Frames that are in several items are stored once. Unless the ends are padded, frames
    after the last item are dropped, and so are episodes that are too short.
    """

    def __init__(
        self,
        py_client: replay_service.Client,
        table_name: str | Sequence[str],
        sequence_length: int,
        stride_length: int = 1,
        priority: float = 1,
        pad_end_of_episodes: bool = False,
        tile_end_of_episodes: bool = False,
    ) -> None:
        """Opens a writer.

        Args:
          py_client: The client of the replay server.
          table_name: The table, or several tables, to write to. Several tables share
            the frames.
          sequence_length: The number of frames in an item (`T`).
          stride_length: The number of frames from the start of one item to the start of
            the next: with 1 there is an item for every window, and with
            `sequence_length` items do not overlap.
          priority: The priority of new items.
          pad_end_of_episodes: Whether boundary frames of zeros are added at the end of
            an episode, so that an episode shorter than `sequence_length` makes an item.
          tile_end_of_episodes: Whether to add enough padding frames that the last item
            begins with the episode's boundary. Take an episode F, M, L with boundary B,
            padding P and 4 frames per item: the items are F M L B, M L B P, L B P P and
            B P P P. Without tiling, F M L B is the only item.

        Raises:
          ValueError: If a length is not positive, the priority is not a finite number
            of at least 0, no table is given, or `tile_end_of_episodes` is set without
            `pad_end_of_episodes`.
        """
        number_checks.check_sizes(
            sequence_length=sequence_length, stride_length=stride_length
        )
        self._stride_length = stride_length
        if tile_end_of_episodes and not pad_end_of_episodes:
            raise ValueError(
                "tile_end_of_episodes: got True with pad_end_of_episodes=False, "
                "expected both: tiles are made of padding. Set "
                "pad_end_of_episodes=True when using tile_end_of_episodes."
            )
        self._pad_end_of_episodes = pad_end_of_episodes
        self._tile_end_of_episodes = tile_end_of_episodes
        self._last_trajectory: Any = None
        super().__init__(py_client, table_name, sequence_length, priority)

    def reset(self, write_cached_steps: bool = True) -> None:
        """Ends the episode here; this is not needed between whole episodes.

        Args:
          write_cached_steps: Whether to pad the cached frames, as at the end of an
            episode; False drops the frames that belong to no item.

        Raises:
          ValueError: If `write_cached_steps` is True and there are frames after the
            last item, but `pad_end_of_episodes` is False.
        """
        if write_cached_steps and self._cached_steps:
            if self._pad_end_of_episodes:
                self._pad()
            elif not self._is_item_complete():
                raise ValueError(
                    f"write_cached_steps: got True, but not enough steps remain in the "
                    f"cache to write an item with sequence_length={self._num_frames} "
                    f"(and stride_length={self._stride_length}): there are "
                    f"{self._cached_steps}; consider enabling pad_end_of_episodes, or "
                    "drop them with write_cached_steps=False."
                )
        self._end_episode()

    def _observe(self, trajectory: trajectory_lib.Trajectory) -> None:
        self._last_trajectory = trajectory
        self._append(trajectory)
        self._write_cached_steps()

    def _end_at_boundary(self) -> None:
        self.reset(write_cached_steps=self._pad_end_of_episodes)

    def _end_at_cut(self) -> None:
        self._end_at_boundary()

    def _is_item_complete(self) -> bool:
        frames_after_first = self._cached_steps - self._num_frames
        return frames_after_first >= 0 and frames_after_first % self._stride_length == 0

    def _write_cached_steps(self) -> None:
        # Subclasses with a `__call__` of their own call it, as TF-Agents' PPO does.
        if self._is_item_complete():
            self._write_item(self._num_frames)

    def _pad(self) -> None:
        frame = _padding_like(self._last_trajectory)
        length = self._num_frames - self._cached_steps
        if self._tile_end_of_episodes:
            length = self._num_frames - 1
        for _ in range(length):
            self._append(frame)
            self._write_cached_steps()

    def _forget(self) -> None:
        super()._forget()
        self._last_trajectory = None


class ReverbTrajectorySequenceObserver(ReverbAddTrajectoryObserver):
    """Writes sequences of successive frames that may cross the ends of episodes.

    Like `ReverbAddTrajectoryObserver`, but the end of an episode does not end a
    sequence, so boundaries (and cuts) may be anywhere in an item. Agents recognise
    boundaries by the step types and learn nothing from them.

    Drivers do not count boundaries as steps. To get one item for every run of n steps,
    set `stride_length` as well as `sequence_length` to n, and expect that some items
    begin a little earlier or later.
    """

    def _end_at_boundary(self) -> None:
        """Does nothing: the boundary is a frame like any other."""

    def _end_at_cut(self) -> None:
        """Does nothing: samplers recognise a cut by the step types on both sides."""


def _padding_like(
    trajectory: trajectory_lib.Trajectory,
) -> trajectory_lib.Trajectory:
    """Returns a boundary frame (LAST to FIRST) of zeros, shaped like `trajectory`."""
    zeros = tree.map_structure(lambda x: np.zeros_like(np.asarray(x)), trajectory)
    return trajectory_lib.boundary(
        zeros.observation, zeros.action, zeros.policy_info, zeros.reward, zeros.discount
    )
