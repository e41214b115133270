"""A writer of items that share steps."""

from __future__ import annotations

import contextlib
import datetime
import functools
import math
import numbers
import sys
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import tree

from tfrl.replay_service import errors
from tfrl.replay_service.transport import connection as connections
from tfrl.replay_service.writing import background_flusher
from tfrl.replay_service.writing.buffers import StepBuffers
from tfrl.replay_service.writing.history import TrajectoryColumn
from tfrl.replay_service.writing.items import Group, GroupLayouts, Key
from tfrl.replay_service.writing.stream import WriterStream

_CLOSING = 0.5  # Seconds that `close` waits for confirmation.


class TrajectoryWriter:
    """Appends steps, and creates items from recent steps; see `Client`.

        with client.trajectory_writer(num_keep_alive_refs=3) as writer:
            for step in steps:
                writer.append(step)  # A nest of arrays and numbers.
                if writer.episode_steps >= 3:
                    writer.create_item(
                        table="table",
                        priority=1.0,
                        trajectory={
                            "observation": writer.history["observation"][-3:],
                            "action": writer.history["action"][-1],
                        },
                    )
            writer.end_episode()

    A step is only sent if an item refers to it, and only once, even if several items
    do. Items are sent in batches: when 64 items or 4 MiB of steps are waiting, when
    `flush`, `end_episode` or `close` is called, and 50 ms after they were created. Each
    item is inserted exactly once, in the order of `create_item`, even if the connection
    is lost and made again.

    Only `flush` and `end_episode` wait for the server. If neither is called, the writer
    keeps all items in memory that a table's rate limiter holds back.

    Only one thread may use a writer. In a forked child process, the writer keeps its
    history but has no items; the parent process sends the items created so far.
    """

    def __init__(
        self,
        connect: Callable[[dict[str, Any]], connections.Connection],
        num_keep_alive_refs: int,
        *,
        validate_items: bool = True,
        by_steps: bool = False,
    ):
        """Creates a writer; `Client.trajectory_writer` calls this.

        Args:
          connect: Returns a connection, given additional fields for the greeting.
          num_keep_alive_refs: The number of recent steps that items can refer to.
          validate_items: Whether `create_item` checks items against the tables'
            signatures. The server checks them in any case.
          by_steps: Whether a signature may describe single steps instead of items.

        Raises:
          ValueError: If `num_keep_alive_refs` < 1.
          ReplayUnavailable: If no server answers.
        """
        _check_keep(num_keep_alive_refs)
        self._stream: WriterStream | None = None
        self._episode_start = 0
        self._buffers = StepBuffers(num_keep_alive_refs)
        self._layouts = GroupLayouts(validates=validate_items, by_steps=by_steps)
        self._stream = WriterStream(connect, self._buffers, self._layouts)

    def __enter__(self) -> Self:
        """Returns the writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Flushes all items, unless the block ends with a `ReverbError`."""
        if kind is None or not issubclass(kind, errors.ReverbError):
            self.flush()

    def __del__(self) -> None:
        """Sends the remaining items, and waits briefly for their confirmation."""
        stream = getattr(self, "_stream", None)
        # At the end of the process, the interpreter sets the names of modules to None.
        if stream is not None and sys is not None and not sys.is_finalizing():
            with contextlib.suppress(RuntimeError):  # No more threads can start.
                background_flusher.close_after_writer(stream, _CLOSING)

    @property
    def history(self) -> Any:
        """All steps of the episode, as a nest of `ColumnHistory`s like the data.

        Each leaf is indexed like a list of its values so far, and returns a
        `TrajectoryColumn`: `[-3:]` for the last three steps, `[-1]` for the last step
        without a time dimension, `[[-4, -1]]` for two steps. `history["a"][i]` and
        `history["b"][i]` always belong to the same step. Steps that are no longer kept,
        or in which the leaf has no value, cannot be in an item.

        Raises:
          RuntimeError: If nothing has been appended, or no step had an array.
        """
        history = self._buffers.structure.history
        if not self._buffers.structure.columns:
            if self._buffers.end:
                raise RuntimeError(
                    "history: no step so far holds an array or a number; append at "
                    "least one."
                )
            raise RuntimeError(
                "history cannot be accessed before `append` is called at least once."
            )
        return history

    @property
    def episode_steps(self) -> int:
        """The number of steps of the episode, not counting an open step."""
        buffers = self._buffers
        return buffers.end - self._episode_start - buffers.is_open

    def configure(
        self,
        path: tuple[int | str, ...],
        *,
        num_keep_alive_refs: int,
        max_chunk_length: int | None,
    ) -> None:
        """Sets the number of recent steps of one leaf that the writer keeps.

        Args:
          path: The path of the leaf.
          num_keep_alive_refs: The number of recent steps that items can refer to.
          max_chunk_length: Checked but not used: steps are not stored in chunks here.

        Raises:
          ValueError: If `num_keep_alive_refs` < 1, or `max_chunk_length` is neither
            None nor between 1 and `num_keep_alive_refs`.
        """
        _check_keep(num_keep_alive_refs)
        if max_chunk_length is not None and not (
            1 <= max_chunk_length <= num_keep_alive_refs
        ):
            raise ValueError(
                f"max_chunk_length ({max_chunk_length}) must be None or a positive "
                f"integer <= num_keep_alive_refs ({num_keep_alive_refs})"
            )
        self._buffers.configure(path, num_keep_alive_refs)

    def append(self, data: Any, *, partial_step: bool = False) -> None:
        """Adds a step, or some of its leaves.

        Args:
          data: A nest of arrays, numbers and eager tensors, which are copied. A step
            may have new leaves. A leaf that is missing or None has no value in this
            step. The first value of a leaf determines its dtype and shape.
          partial_step: Whether the next call adds more leaves to this step. Items can
            already refer to the leaves given so far.

        Raises:
          ValueError: If the dtype or shape of a leaf has changed, a leaf already has a
            value in this step or does not consist of numbers, or a leaf has become a
            nest. The step is not added.
          Exception: The error with which the server refused an earlier item.
        """
        stream = self._stream
        if stream is None or stream.is_closed or stream.problem is not None:
            self._raise_problem()
        self._buffers.append(data, partial_step)

    def extend(self, data: Any) -> None:
        """Adds many steps at once, without work for each of them.

        Args:
          data: A nest of arrays and eager tensors `[N, ...]`, which the writer keeps:
            do not change them. Every leaf of earlier steps must be in it.

        Raises:
          ValueError: If the dtype or shape of a leaf's steps has changed, the leaves
            differ in N, a leaf is missing, does not consist of numbers or has become a
            nest, or the last step is open. No step is added.
          Exception: The error with which the server refused an earlier item.
        """
        self._raise_problem()
        self._buffers.extend(data)

    def create_items(
        self, table: str, priority: float, trajectory: Any, shifts: np.ndarray
    ) -> None:
        """Creates items of the same layout, without work for each of them.

        Args:
          table: The name of the table.
          priority: The priority of each item, at least 0.
          trajectory: A nest of `TrajectoryColumn`s from `history`; see `create_item`.
          shifts: int64 `[n]`, `n >= 1`. The item of each shift has the steps of
            `trajectory`, each shifted by that many steps into the future. Items are
            inserted in this order.

        Raises:
          TypeError: See `create_item`.
          ValueError: See `create_item`. Every step from the first to the last one of
            the items must have a value in each column.
          Exception: The error with which the server refused an earlier item.
        """
        stream = self._raise_problem()
        priority = _as_float(priority)
        if not 0.0 <= priority < math.inf:
            raise _bad_priority(priority)
        columns = _checked_columns(trajectory)
        first = columns[0]._start
        key = _key(table, columns)
        least, most = int(shifts.min()), int(shifts.max())
        for column in columns:
            steps = column.steps
            if steps and not column._column.are_available(
                min(steps) + least, max(steps) + most
            ):
                raise ValueError(
                    f"shifts: got {least} to {most}, but the writer does not keep all "
                    f"steps of {column} that they lead to: create the items before so "
                    "many steps are appended, or raise num_keep_alive_refs."
                )
        with stream.lock:
            group = stream.group
            if group is None or group.key != key:
                group = self._open_group(stream, table, key, columns)
            group.starts.extend((shifts + first).tolist())
            group.priorities.extend([priority] * len(shifts))
            stream.added(len(shifts))

    def create_item(self, table: str, priority: float, trajectory: Any) -> None:
        """Creates an item, to be inserted into a table. Never waits.

        Args:
          table: The name of the table.
          priority: The priority, at least 0.
          trajectory: A nest of `TrajectoryColumn`s from `history`. Their lengths and
            steps may differ.

        Raises:
          TypeError: If a leaf of `trajectory` is of another type.
          ValueError: If the table does not exist, its signature does not match, the
            priority is negative or not finite, the trajectory is empty, or it refers to
            steps that are no longer kept.
          Exception: The error with which the server refused an earlier item.
        """
        stream = self._stream
        if stream is None or stream.is_closed or stream.problem is not None:
            stream = self._raise_problem()
        if type(priority) is not float:
            priority = _as_float(priority)
        if not 0.0 <= priority < math.inf:
            raise _bad_priority(priority)
        try:
            if type(trajectory) is dict:
                columns = [trajectory[key] for key in _sorted(tuple(trajectory))]
            else:
                columns = tree.flatten(trajectory)
            first = columns[0]._start
            key = _key(table, columns)
        except (AttributeError, IndexError):
            columns = _checked_columns(trajectory)
            first = columns[0]._start
            key = _key(table, columns)
        buffers = self._buffers
        with stream.lock:
            group = stream.group
            if group is None or group.key != key:
                group = self._open_group(stream, table, key, columns)
            elif first + group.lowest < max(buffers.start, buffers.end - buffers.keep):
                _check_kept(columns)
            group.starts.append(first)
            group.priorities.append(priority)
            stream.added()

    def flush(
        self, block_until_num_items: int = 0, timeout_ms: int | None = None
    ) -> None:
        """Waits until all items, or all but a few, are in their tables.

        Args:
          block_until_num_items: The number of items that may remain unconfirmed.
          timeout_ms: The number of milliseconds to wait; None for no limit.

        Raises:
          ValueError: If `block_until_num_items` < 0.
          DeadlineExceededError: If time is up first. The items are inserted later.
          ReplayUnavailable: If the connection was lost and could not be made again.
          Exception: The error with which the server refused an item.
        """
        if block_until_num_items < 0:
            raise ValueError(
                f"block_until_num_items must be >= 0, got {block_until_num_items}"
            )
        self._flush("Flush", block_until_num_items, timeout_ms)

    def end_episode(
        self, clear_buffers: bool = True, timeout_ms: int | None = None
    ) -> None:
        """Flushes all items and starts a new episode.

        Args:
          clear_buffers: Whether to drop the steps so far, so that later items cannot
            refer to them.
          timeout_ms: The number of milliseconds to wait; None for no limit. The episode
            ends in any case.

        Raises:
          DeadlineExceededError: If time is up first. The items are inserted later.
          ReplayUnavailable: If the connection was lost and could not be made again.
          Exception: The error with which the server refused an item.
        """
        try:
            self._flush("End episode", 0, timeout_ms)
        finally:
            stream, buffers = self._stream, self._buffers
            buffers.is_open = False
            self._episode_start = buffers.end
            if clear_buffers:
                buffers.clear()
            if stream is not None:
                stream.next_episode()

    def close(self) -> None:
        """Sends the remaining items and closes the writer.

        Waits up to half a second for the server to confirm them. Call `flush` first to
        be sure that all items are inserted.

        Raises:
          Exception: The error with which the server refused an item.
        """
        if self._stream is not None:
            self._stream.close(_CLOSING)

    def _open_group(
        self,
        stream: WriterStream,
        table: str,
        key: Key,
        columns: list[TrajectoryColumn],
    ) -> Group:
        for column in columns:
            if column._column.buffers is not self._buffers:
                raise ValueError(
                    f"Column {column._column.path} of `trajectory` belongs to the "
                    "history of another writer: use a writer's own history."
                )
        _check_kept(columns)
        layout = self._layouts.get(key, table, columns)
        group = Group(key, layout, stream.episode)
        stream.open_group(group)
        return group

    def _flush(self, name: str, limit: int, timeout_ms: int | None) -> None:
        stream = self._stream
        if stream is None or stream.is_closed:
            stream = self._raise_problem()
        # In Reverb, negative numbers mean no limit.
        if timeout_ms is None or timeout_ms < 0:
            stream.flush(limit, None)
        elif not stream.flush(limit, timeout_ms / 1000):
            raise errors.DeadlineExceededError(
                f"{name} call did not complete within provided timeout of "
                f"{datetime.timedelta(milliseconds=timeout_ms)}"
            )

    def _raise_problem(self) -> WriterStream:
        """Returns the stream, unless an error since the last call has to be raised."""
        stream = self._stream
        if stream is None or stream.is_closed:
            raise RuntimeError(
                "TrajectoryWriter::Close has been called. Ask the client for another "
                "writer."
            )
        with stream.lock:
            stream.raise_problem()
        return stream


@functools.lru_cache(maxsize=256)
def _sorted(keys: tuple[Any, ...]) -> list[Any]:
    return sorted(keys)


def _check_keep(num_keep_alive_refs: Any) -> None:
    if not isinstance(num_keep_alive_refs, numbers.Integral) or num_keep_alive_refs < 1:
        raise ValueError(
            f"num_keep_alive_refs ({num_keep_alive_refs}) must be a positive integer"
        )


def _as_float(priority: Any) -> float:
    to_numpy = getattr(priority, "numpy", None)
    value = np.asarray(to_numpy() if callable(to_numpy) else priority)
    if value.size != 1 or value.dtype.kind not in "biuf":
        raise TypeError(f"`priority` must be a number, got {priority!r}.")
    return float(value.reshape(()))


def _bad_priority(priority: float) -> ValueError:
    if math.isnan(priority):
        return ValueError("`priority` must not be nan.")
    return ValueError(
        f"`priority` must be a finite number that is at least 0, got {priority}."
    )


def _checked_columns(trajectory: Any) -> list[TrajectoryColumn]:
    columns = tree.flatten(trajectory)
    if not all(isinstance(column, TrajectoryColumn) for column in columns):
        raise TypeError(
            "All leaves of `trajectory` must be `TrajectoryColumn` but got "
            f"{trajectory}"
        )
    if not columns:
        raise ValueError("trajectory must not be empty. Pass columns of `history`.")
    return columns


def _key(table: str, columns: list[TrajectoryColumn]) -> Key:
    first = columns[0]._start
    parts = [(c._column, c._start - first, c._extent, c.is_squeezed) for c in columns]
    return (table, *parts)


def _check_kept(columns: list[TrajectoryColumn]) -> None:
    for i, column in enumerate(columns):
        if not all(map(column._column.is_available, column.steps)):
            raise ValueError(
                f"Error in column {i}: Column contains expired CellRef. The writer no "
                f"longer keeps {column}: create the item before so many steps are "
                "appended, or raise num_keep_alive_refs."
            )
