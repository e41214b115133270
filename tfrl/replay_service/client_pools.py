"""The connections and writers of a client, kept from call to call for any thread."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import tree

from tfrl.replay_service import errors
from tfrl.replay_service.replay_sample import SampleInfo
from tfrl.replay_service.sampling import sampler
from tfrl.replay_service.sampling.sampler_session import SamplerSession
from tfrl.replay_service.trajectory_writer import TrajectoryWriter
from tfrl.replay_service.transport import connection as connections
from tfrl.replay_service.transport import deadlines, wire

_MOST_IDLE = 4  # Idle connections of a pool.
_KINDS = 16  # Maximum number of kinds of data (dtypes and shapes) with idle writers.
_AHEAD = 64  # Maximum number of samples that are drawn ahead of their use.

ConnectionT = TypeVar("ConnectionT")


class IdlePool(Generic[ConnectionT]):
    """Keeps a few idle connections or writers. All threads may use it.

    In a forked process, the pool is empty.
    """

    def __init__(self, close: Callable[[ConnectionT], None]):
        """Creates an empty pool.

        Args:
          close: Closes a connection.
        """
        self._close = close
        # The garbage collector may close a generator, which then keeps its connection
        # here, in any thread, even in one that holds the lock.
        self._lock = threading.RLock()
        self._idle: list[ConnectionT] = []
        _POOLS.add(self)

    def take(self) -> ConnectionT | None:
        """Removes and returns the connection that was kept last, or None."""
        with self._lock:
            return self._idle.pop() if self._idle else None

    def keep(self, connection: ConnectionT) -> None:
        """Keeps a connection, or closes it if there are enough."""
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        self._close(connection)

    def clear(self) -> None:
        """Closes all idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            self._close(connection)


_POOLS: weakref.WeakSet[IdlePool] = weakref.WeakSet()


def _forget_connections() -> None:
    # The connections belong to the parent, and a thread of the parent may hold the
    # lock.
    for pool in list(_POOLS):
        pool._lock = threading.RLock()
        pool._idle = []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)


class ControlConnections:
    """Connections of role "control", which are opened for requests and used again.

    All threads may use it. Concurrent requests do not wait for each other: each has its
    own connection.
    """

    def __init__(self, connect: Callable[[float | None], connections.Connection]):
        """Stores the function that connects, without connecting.

        Args:
          connect: Returns a new connection. Its argument is the number of seconds to
            keep trying, or None for the client's default.
        """
        self._connect = connect
        self._idle = IdlePool[connections.Connection](connections.Connection.close)

    def request(
        self,
        kind: int,
        meta: Mapping[str, Any],
        arrays: Sequence[np.ndarray] = (),
        *,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Sends a request and returns the JSON object of the answer.

        The request is sent again if the connection breaks, so it must be idempotent.

        Args:
          kind: The kind of the message.
          meta: The JSON object of the message.
          arrays: The arrays of the message.
          timeout: The number of seconds to wait for the answer; None for no limit.

        Raises:
          DeadlineExceededError: If there is no answer within `timeout` seconds.
          ReplayUnavailable: If no server answers.
          Exception: The error with which the server answered.
        """
        deadline = deadlines.after(timeout)
        try:
            return self._request(kind, meta, arrays, deadline)
        except errors.ConnectionLost:
            self._idle.clear()  # The idle connections were probably lost as well.
            return self._request(kind, meta, arrays, deadline)

    def tables(self) -> dict[str, Any]:
        """Returns the tables in the server's answer to the greeting.

        Raises:
          ReplayUnavailable: If no server answers.
        """
        link = self._connected(None)
        self._idle.keep(link)
        return link.welcome["tables"]

    def close(self) -> None:
        """Closes the idle connections. A later request opens a new one."""
        self._idle.clear()

    def _request(
        self,
        kind: int,
        meta: Mapping[str, Any],
        arrays: Sequence[np.ndarray],
        deadline: float | None,
    ) -> dict[str, Any]:
        link = self._connected(deadline)
        try:
            link.send(kind, meta, arrays)
            frame = link.receive(deadlines.remaining(deadline))
        except BaseException:
            # A late answer would be mistaken for the answer to the next request.
            link.close()
            raise
        if frame is None:
            link.close()
            raise errors.DeadlineExceededError("The server did not answer in time.")
        self._idle.keep(link)
        if frame.kind == wire.ERROR:
            raise errors.from_meta(frame.meta)
        return frame.meta

    def _connected(self, deadline: float | None) -> connections.Connection:
        link = self._idle.take()
        if link is not None:
            return link
        remaining = deadlines.remaining(deadline)
        if remaining == 0:
            raise errors.DeadlineExceededError("No server answered in time.")
        return self._connect(remaining)


class ClientInserts:
    """Inserts items from any thread. Concurrent calls do not wait for each other."""

    def __init__(self, make_writer: Callable[[], TrajectoryWriter]):
        """Starts without writers.

        Args:
          make_writer: Returns a new writer that keeps one step.
        """
        self._make_writer = make_writer
        self._idle: dict[Any, IdlePool[TrajectoryWriter]] = {}

    def insert(self, data: Any, priorities: Mapping[str, float]) -> None:
        """Inserts one item; see `Client.insert`."""
        if not priorities:
            raise ValueError("priorities must contain at least one item")
        leaves = [_leaf(value) for value in tree.flatten(data)]
        if not leaves:
            raise ValueError(
                f"data: got {data!r:.200}, which holds no arrays and numbers, expected "
                "at least one."
            )
        idle = self._idle_for(tuple((array.dtype, array.shape) for array in leaves))
        writer = idle.take() or self._make_writer()
        writer.append(leaves)
        trajectory = [column[-1:] for column in writer.history]
        try:
            for table, priority in priorities.items():
                writer.create_item(table, priority, trajectory)
        finally:
            writer.end_episode(clear_buffers=False)
        idle.keep(writer)

    def _idle_for(self, kind: Any) -> IdlePool[TrajectoryWriter]:
        """Returns the idle writers for a kind of data."""
        if kind not in self._idle and len(self._idle) >= _KINDS:
            self._idle.clear()
        return self._idle.get(kind) or self._idle.setdefault(
            kind, IdlePool(TrajectoryWriter.close)
        )


def _leaf(value: Any) -> np.ndarray:
    if value is None:
        raise TypeError("data: got None as a leaf, expected arrays and numbers.")
    to_numpy = getattr(value, "numpy", None)
    return np.asarray(to_numpy() if callable(to_numpy) else value)


class ClientSamples:
    """Draws samples. All threads may use it concurrently."""

    def __init__(self, server_address: str, access: Mapping[str, Any]):
        """Creates an empty pool.

        Args:
          server_address: "host:port".
          access: The client's options for `connection.connect`.
        """
        self._server_address = server_address
        self._access = access
        self._idle = IdlePool(SamplerSession.close)

    def draw(
        self, table: str, num_samples: int
    ) -> Iterator[tuple[SampleInfo, list[np.ndarray]]]:
        """Yields sampled items of a table, or nothing if `num_samples` is negative.

        Raises:
          ReplayUnavailable: If no server answers.
        """
        if num_samples < 0:
            return
        with self.stream(
            table, num_samples, max_in_flight=min(num_samples, _AHEAD)
        ) as stream:
            while num_samples:
                for item in stream.next_items(num_samples):
                    num_samples -= 1
                    yield item

    def draw_batch(
        self, table: str, batch_size: int
    ) -> tuple[SampleInfo, list[np.ndarray]]:
        """Returns the infos of sampled items, `[B]`, and their columns, `[B, ...]`.

        Raises:
          ValueError: If the items differ in shape.
          ReplayUnavailable: If no server answers.
        """
        with self.stream(table, batch_size, max_in_flight=batch_size) as stream:
            batch = stream.next_batch(batch_size)
        assert batch is not None  # No timeout.
        fields = len(SampleInfo._fields)
        return SampleInfo(*batch[:fields]), batch[fields:]

    @contextlib.contextmanager
    def stream(
        self, table: str, num_samples: int, **options: Any
    ) -> Iterator[sampler.SampleStream]:
        """Yields a stream of a number of samples; keeps its connection afterwards.

        Args:
          table: The name of the table.
          num_samples: The number of samples.
          **options: Further arguments of `SampleStream`.
        """
        stream = sampler.SampleStream(
            self._server_address,
            table,
            max_samples=num_samples,
            session=self._idle.take(),
            **options,
            **self._access,
        )
        try:
            yield stream
        finally:
            session = stream.detach()
            if session is not None:
                self._idle.keep(session)


def steps(data: Sequence[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Yields the steps of an item.

    Raises:
      ValueError: If the columns of the item have different lengths.
    """
    lengths = {len(column) if column.ndim else None for column in data}
    if len(lengths) != 1 or None in lengths:
        raise ValueError(
            "Can't split non timestep trajectory into timesteps. The columns have the "
            f"lengths {[c.shape[:1] for c in data]}: sample with emit_timesteps=False."
        )
    for i in range(len(data[0])):
        yield [np.asarray(column[i], column.dtype) for column in data]
