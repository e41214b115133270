"""Streams samples of a table as batches of NumPy arrays, without TensorFlow.

A stream keeps requests in flight, so that samples are available when they are needed.
On the server's own host, messages only contain the positions of a sample's steps in the
server's memory, and the stream copies the steps directly into the batch.
"""

from __future__ import annotations

import collections
import logging
import math
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrl.replay_service import errors, signatures
from tfrl.replay_service.replay_sample import SampleInfo
from tfrl.replay_service.sampling.rows import (
    Batches,
    FilledBatch,
    MessageLayout,
    MessageRows,
)
from tfrl.replay_service.sampling.sampler_session import Connector, SamplerSession
from tfrl.replay_service.transport import deadlines, wire
from tfrl.specs import spec_json

_LOGGER = logging.getLogger("tfrl.replay_service")
_MOST_REQUESTED = 256  # Maximum number of samples in one request.
_MOST_LAYOUTS = 64  # Sessions, each of which may keep one of the server's files open.
_MOST_AHEAD = (
    4000  # Samples, of one message each at worst; a server keeps 4096 per session.
)


class Exhausted(Exception):
    """Raised when a stream has ended."""


class SampleStream:
    """A stream of a table's samples, which are drawn on demand and slightly ahead.

    The server draws at most `max_in_flight` samples more than the stream has returned.
    After a lost connection, samples that were not copied yet are drawn again.

    Only one thread may use a stream at a time, but any thread may call `close`.
    """

    def __init__(
        self,
        server_address: str,
        table: str,
        *,
        max_in_flight: int = 1,
        timeout_ms: int = -1,
        max_samples: int = -1,
        max_samples_per_stream: int = -1,
        timesteps: bool = False,
        specs: Sequence[spec_json.Leaf] | None = None,
        reuse_memory: bool = False,
        session: SamplerSession | None = None,
        token: str | None = None,
        tls_root_certificates: bytes | None = None,
        timeout: float = 30.0,
    ):
        """Creates a stream, which connects when samples are first needed.

        Args:
          server_address: "host:port".
          table: The name of the table.
          max_in_flight: The maximum number of samples drawn ahead of their use.
          timeout_ms: The stream ends after waiting this many milliseconds for the
            table's rate limiter; -1 for no limit.
          max_samples: The number of samples after which the stream ends; -1 for no end.
          max_samples_per_stream: The maximum number of samples in one request; -1 for
            the default.
          timesteps: Whether each row is a time step of an item, not a whole item.
          specs: The expected specs of a row, which are checked against the table's
            signature and against the samples.
          reuse_memory: See `rows.Batches`.
          session: A session to reuse, returned by `detach` of another stream of the
            same server; None for a new session.
          token: See `connection.connect`.
          tls_root_certificates: See `connection.connect`.
          timeout: The number of seconds to keep trying to reach a server.
        """
        self._address = server_address
        self._table = table
        self._max_in_flight = min(max_in_flight, _MOST_AHEAD)
        self._timeout_ms = timeout_ms
        self._timesteps = timesteps
        self._specs = specs
        self._left: float = max_samples if max_samples >= 0 else math.inf
        most = max_samples_per_stream if max_samples_per_stream > 0 else max_in_flight
        self._request_size = min(most, -(-self._max_in_flight // 2), _MOST_REQUESTED)
        self._connector = Connector(
            server_address, token, tls_root_certificates, timeout
        )
        self._session = session
        self._is_checked = False
        self._signature: list[spec_json.Leaf] | None = None
        self._layouts: dict[int, MessageLayout] = {}
        self._rows: collections.deque[MessageRows] = collections.deque()
        self._outstanding: collections.deque[list[int]] = collections.deque()
        self._ahead = 0  # Samples that were requested but not returned.
        self._lent = 0  # Samples of the last `next_rows`, which still count as ahead.
        self._to_release = 0
        self._batches = Batches(reuse_memory)
        self._batch: FilledBatch | None = None  # A batch that is not complete.
        self._timed_out = False
        self._closed = False
        self._lock = threading.Lock()

    @property
    def signature(self) -> list[spec_json.Leaf] | None:
        """The table's flat signature; None without one, or before the first samples."""
        return self._signature

    def next_batch(
        self, count: int, *, timeout: float | None = None
    ) -> list[np.ndarray] | None:
        """Returns the next `count` rows, or fewer at the end of the stream.

        Args:
          count: The number of rows. After a result of None, pass the same number again.
          timeout: The number of seconds to wait; None for no limit.

        Returns:
          The fields of `SampleInfo`, each `[count]`, followed by the columns of the
          data, each `[count, ...]`; None when time is up.

        Raises:
          Exhausted: If the stream has ended.
          ValueError: If rows differ in shape or do not match the specs.
          RuntimeError: If there is no such table.
          ReplayUnavailable: If no server answers.
        """
        with self._lock:
            deadline = deadlines.after(timeout)
            batch = self._batch = self._batch or FilledBatch(self._batches, count)
            while batch.left:
                if not self._rows:
                    if self._has_ended():
                        break
                    if not self._receive(deadline):
                        return None
                    continue
                self._fill(batch, batch.left)
            self._push()
            self._batch = None
            if not batch.filled:
                raise Exhausted
            return batch.finished()

    def next_rows(
        self, most: int, *, timeout: float | None = None
    ) -> list[np.ndarray] | None:
        """Returns the available rows, at least one and at most `most`.

        The rows count as drawn ahead until the next call. The format of the result and
        the errors are the same as for `next_batch`.

        Args:
          most: The maximum number of rows.
          timeout: The number of seconds to wait; None for no limit.
        """
        with self._lock:
            self._ahead -= self._lent
            self._lent = 0
            deadline = deadlines.after(timeout)
            while not self._rows:
                if self._has_ended():
                    raise Exhausted
                if not self._receive(deadline):
                    return None
            # The rest stays in flight and arrives while these rows are used.
            enough = min(most, self._request_size)
            while self._outstanding and self._alike() < enough:
                if not self._receive(time.monotonic()):
                    break
            before = self._ahead
            batch = FilledBatch(self._batches, min(self._alike(), most))
            while batch.left:
                self._fill(batch, batch.left)
            self._lent, self._ahead = before - self._ahead, before
            self._push()
            return batch.finished()

    def fill(
        self, batch: FilledBatch, most: int, *, timeout: float | None = None
    ) -> int:
        """Copies available rows into a batch of the caller's.

        Args:
          batch: The batch.
          most: The maximum number of rows, at most `batch.left`.
          timeout: The number of seconds to wait; None for no limit.

        Returns:
          The number of rows; 0 when time is up.

        Raises:
          Exhausted: If the stream has ended.
          ValueError: If the rows differ in shape from the rows in the batch, or do not
            match the specs.
          RuntimeError: If there is no such table.
          ReplayUnavailable: If no server answers.
        """
        with self._lock:
            deadline = deadlines.after(timeout)
            while not self._rows:
                if self._has_ended():
                    raise Exhausted
                if not self._receive(deadline):
                    return 0
            # The rest of the messages that have arrived.
            while self._outstanding and sum(rows.left for rows in self._rows) < most:
                if not self._receive(time.monotonic()):
                    break
            filled = batch.filled
            while self._rows and batch.filled - filled < most:
                self._fill(batch, most - (batch.filled - filled))
            self._push()
            return batch.filled - filled

    def next_items(self, most: int) -> list[tuple[SampleInfo, list[np.ndarray]]]:
        """Returns the rows of `next_rows` as a list of `(info, columns)` pairs.

        The fields of each info are Python numbers.

        Args:
          most: The maximum number of rows.
        """
        batch = self.next_rows(most)
        assert batch is not None  # No timeout.
        fields = len(SampleInfo._fields)
        infos = zip(*(array.tolist() for array in batch[:fields]), strict=True)
        data = batch[fields:]
        return [
            (SampleInfo(*info), [array[i, ...] for array in data])
            for i, info in enumerate(infos)
        ]

    def detach(self) -> SamplerSession | None:
        """Ends the stream; returns its session if another stream can use it."""
        with self._lock:
            self._closed = True
            is_idle = not self._outstanding and not self._rows
            self._push()
            session, self._session = self._session, None
            if session is not None and not is_idle:
                session.close()
                return None
            return session

    def close(self) -> None:
        """Ends the stream. A call in another thread ends when its timeout is over."""
        self._closed = True
        self._connector.abandon()
        if self._lock.acquire(blocking=False):
            try:
                if self._session is not None:
                    self._session.close()
                    self._session = None
            finally:
                self._lock.release()

    def _fill(self, batch: FilledBatch, most: int) -> None:
        """Copies rows of the oldest message into a batch."""
        rows = self._rows[0]
        self._ahead -= batch.take(rows, min(rows.left, most))
        if not rows.left:
            self._rows.popleft()
            self._to_release += rows.pinned

    def _alike(self) -> int:
        """Returns the number of available rows that can be in one batch."""
        count = 0
        for rows in self._rows:
            if rows.layout.specs != self._rows[0].layout.specs:
                break
            count += rows.left
        return count

    def _has_ended(self) -> bool:
        if self._closed or self._timed_out:
            return True
        return self._left <= 0 and not self._outstanding

    def _receive(self, deadline: float | None) -> bool:
        """Handles the next message; returns False when time is up."""
        if self._session is None:
            self._session = self._connector.connect(deadline)
            self._is_checked = False
            if self._session is None:
                return False
        if not self._is_checked:
            self._check_table(self._session.connection.welcome["tables"])
        try:
            self._push_now()
            frame = self._session.connection.receive(deadlines.remaining(deadline))
        except errors.ConnectionLost as error:
            self._lose(error)
            return True
        if frame is None:
            return False
        try:
            self._take_in(frame)
        except OSError as error:
            _LOGGER.warning(
                "The memory of the replay server at %r cannot be read (%s): samples "
                "are sent in messages instead, which is slower.",
                self._address,
                error,
            )
            self._connector.shared = False
            self._drop()
        return True

    def _take_in(self, frame: wire.Frame) -> None:
        meta = frame.meta
        if frame.kind == wire.ERROR:
            raise errors.from_meta(meta)
        if frame.kind != wire.SAMPLES:
            raise errors.ProtocolError(
                f"Got a message of kind {frame.kind}, expected samples."
            )
        self._connector.worked()
        if frame.arrays and len(frame.arrays[0]):
            assert self._session is not None
            self._outstanding[0][1] -= len(frame.arrays[0])
            layout = self._layout(meta)
            self._rows.append(layout.rows(frame.arrays))
        if meta["done"]:
            self._outstanding.popleft()
        if meta.get("end") == "timeout":
            self._time_out()

    def _layout(self, meta: dict[str, Any]) -> MessageLayout:
        assert self._session is not None
        number = meta["layout"]
        if "define" in meta:
            self._session.define(number, meta["define"])
        layout = self._layouts.get(number)
        if layout is None:
            definition, memory = self._session.layout(number)
            layout = MessageLayout(definition, memory, self._timesteps)
            if self._specs is not None:
                signatures.check_rows(self._table, self._specs, layout.specs)
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            self._layouts[number] = layout
        return layout

    def _time_out(self) -> None:
        """Disconnects, so that the server draws nothing for later requests."""
        self._timed_out = True
        for rows in self._rows:
            rows.copy()
        self._outstanding.clear()
        self._to_release = 0
        assert self._session is not None
        self._session.close()
        self._session = None

    def _push(self) -> None:
        """Requests as many samples as may be drawn ahead; releases copied samples."""
        if self._session is None:
            return
        try:
            self._push_now()
        except errors.ConnectionLost as error:
            self._lose(error)

    def _push_now(self) -> None:
        session = self._session
        assert session is not None
        while not self._has_ended():
            size = int(min(self._request_size, self._left))
            if size <= 0 or self._ahead + size > self._max_in_flight:
                break
            session.sample(self._table, size, self._timeout_ms, self._to_release)
            self._to_release = 0
            self._outstanding.append([session.requests, size])
            self._ahead += size
            self._left -= size
        if self._to_release:
            session.release(self._to_release)
            self._to_release = 0

    def _lose(self, error: Exception) -> None:
        if not self._closed:
            self._connector.lost(error)
        self._drop()

    def _drop(self) -> None:
        """Drops the connection, and the samples that were not received or copied."""
        if self._session is not None:
            self._session.close()
            self._session = None
        lost = sum(size for _, size in self._outstanding)
        self._outstanding.clear()
        kept = [rows for rows in self._rows if not rows.pinned]
        lost += sum(rows.items_left() for rows in self._rows if rows.pinned)
        self._rows = collections.deque(kept)
        self._layouts.clear()
        self._ahead -= lost
        self._left += lost
        self._to_release = 0

    def _check_table(self, tables: dict[str, Any]) -> None:
        if self._table not in tables:
            raise RuntimeError(
                f"Priority table {self._table} was not found; the server at "
                f"{self._address} has {', '.join(sorted(tables)) or 'none'}."
            )
        signature = tables[self._table].get("signature")
        self._signature = None if signature is None else spec_json.leaves(signature)
        if self._specs is not None and self._signature is not None:
            signatures.check_specs(self._table, self._specs, self._signature)
        self._is_checked = True
