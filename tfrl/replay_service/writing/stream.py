"""How a writer's items get to the server, once each, across lost connections."""

from __future__ import annotations

import collections
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.transport import connection as connections
from tfrl.replay_service.transport import wire
from tfrl.replay_service.writing.background_flusher import BACKGROUND_FLUSHER
from tfrl.replay_service.writing.buffers import StepBuffers
from tfrl.replay_service.writing.items import Batch, Group, Layouts, split_groups

BATCH = 64  # Items that are sent together.
_BATCH_BYTES = 4 << 20  # Or less, if their steps are as large as that.
_LARGE = 64 << 10  # Bytes that outweigh a message.
_DELAY = 0.05  # Seconds that an item may wait for others.

Connect = Callable[[dict[str, Any]], connections.Connection]


class WriterStream:
    """Items that wait to be sent, or have been sent and wait to be confirmed.

    All but the constructor, `flush`, `close` and `tick` is called with `lock` held.

    Attributes:
      lock: Of the items; held for as long as it takes to make a message.
      count: How many items have not been sent.
      outstanding: How many have been sent and not confirmed.
      group: The group that is open for more items; None if there is none.
      problem: What went wrong, and is to be raised by the next call of the writer.
      is_closed: Whether nothing can be written any more.
    """

    def __init__(self, connect: Connect, buffers: StepBuffers, layouts: Layouts):
        """Connects.

        Args:
          connect: Returns a connection, given what to say in the greeting.
          buffers: The steps.
          layouts: Of the items.

        Raises:
          ReplayUnavailable: If no server answers.
        """
        self._connect = connect
        self._buffers = buffers
        self._layouts = layouts
        self._groups: list[Group] = []
        self._sent: collections.deque[Batch] = collections.deque()
        self._link: connections.Connection | None = None
        self._thread: threading.Thread | None = None  # While it reconnects.
        self.group: Group | None = None
        self.count = self.outstanding = 0
        self.problem: Exception | None = None
        self.is_closed = False
        self.episode = 0
        self._next_number = 1
        self._since = 0.0  # When the first of the items that wait was made.
        self._next_end = 0  # The number of steps at which to send.
        self._start()
        self._install(connect({"writer_id": self._id}))
        BACKGROUND_FLUSHER.add(self)

    def open_group(self, group: Group) -> None:
        """Starts a group for the next items."""
        self._groups.append(group)
        self.group = group

    def added(self) -> None:
        """Takes note that an item has been added to the open group."""
        self.count += 1
        if self.count == 1:
            self._since = time.monotonic()
            rows = _BATCH_BYTES // max(self._buffers.step_bytes, 1)
            self._next_end = self._buffers.end + max(rows, 1)
            if not BACKGROUND_FLUSHER.event.is_set():
                BACKGROUND_FLUSHER.event.set()
        elif self.count >= BATCH or self._buffers.end >= self._next_end:
            self.send()
            self._receive_all()

    def next_episode(self) -> None:
        """Has the next items belong to another episode."""
        self.episode += 1
        self.group = None

    def send(self) -> None:
        """Sends all items that wait, if there is a connection; never waits."""
        if not self.count:
            return
        if self._link is None:
            self._reconnect()
            return
        # Many are there after a time without a connection.
        batches = []
        for groups in split_groups(self._groups, BATCH):
            batches.append(Batch(groups, self._next_number))
            self._next_number = batches[-1].last + 1
        self.outstanding += self.count
        self._groups, self.group, self.count = [], None, 0
        self._sent.extend(batches)
        self._transmit_all(batches)

    @property
    def _is_large(self) -> bool:
        """Whether it pays to send what waits, also if more may come soon."""
        return self.count * self._buffers.step_bytes > _LARGE

    def raise_problem(self) -> None:
        """Raises what went wrong, once."""
        problem, self.problem = self.problem, None
        if problem is not None:
            raise problem

    def flush(self, limit: int, timeout: float | None) -> bool:
        """Waits until at most `limit` items are not confirmed.

        Args:
          limit: So many.
          timeout: Seconds, or None.

        Returns:
          False if time was up before.

        Raises:
          Exception: What the server refused an item for, or ReplayUnavailable.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self.lock:
            while True:
                self.raise_problem()
                if self.count + self.outstanding <= limit:
                    if self._is_large and 2 * self.count > limit:
                        self.send()  # The server is not to wait for it all.
                        self._receive_all()
                    return True
                if self.count and self._link is not None:
                    self.send()
                    continue
                remaining = None
                if deadline is not None:
                    remaining = deadline - time.monotonic()
                    if remaining <= 0:
                        return False
                if self._link is None:
                    self._reconnect()
                    self._changed.wait(remaining)
                else:
                    self._receive(remaining)

    def close(self, timeout: float) -> None:
        """Sends what there is, and waits for its confirmation, but not for long."""
        if self.is_closed:
            return
        try:
            self.flush(0, timeout)
        finally:
            with self.lock:
                self.is_closed = True
                self._groups, self.group, self.count = [], None, 0
                if self._link is not None:
                    self._link.close()
                    self._link = None

    def tick(self) -> bool:
        """Sends what has waited for long; returns whether to look again soon."""
        if not self.lock.acquire(blocking=False):
            return True
        try:
            if self._link is None:
                if self.count:
                    self._reconnect()
                return False
            if self.count and time.monotonic() - self._since > _DELAY:
                self.send()
            self._receive_all()
            return bool(self.count or self.outstanding)
        finally:
            self.lock.release()

    def lowest_needed(self) -> int:
        """Returns the first step that an item not yet confirmed can refer to."""
        return min([self._lowest_waiting(), *(batch.lowest for batch in self._sent)])

    def _lowest_waiting(self) -> int:
        """Returns the first step that an item not yet sent, or to come, refers to."""
        waiting = [min(g.starts) + g.lowest for g in self._groups if g.starts]
        return min([self._buffers.oldest, *waiting])

    def after_fork(self) -> None:
        """Becomes a writer of its own: what is on its way, the parent sends."""
        link, self._link, self._thread = self._link, None, None
        if link is not None:
            link.close()
        self._start()
        self._buffers.forget_sent()

    def _start(self) -> None:
        self.lock = threading.Lock()
        self._changed = threading.Condition(self.lock)
        self._buffers.guard(self.lock, self.lowest_needed)
        self._id = str(secrets.randbits(64))
        self._groups.clear()
        self._sent.clear()
        self.group = None
        self.count = self.outstanding = 0
        self._next_number = 1
        self._schema_length = 0  # Of the schema that the server knows.

    def _install(self, link: connections.Connection) -> None:
        """Takes a new connection into use."""
        self._link = link
        self._schema_length = 0
        self._buffers.forget_sent()
        self._layouts.set_tables(link.welcome.get("tables", {}))
        self.group = None
        number = int(link.welcome.get("confirmed") or 0)
        self._confirm(number)
        for batch in self._sent:
            batch.drop_confirmed(number)
        self._transmit_all(list(self._sent))
        BACKGROUND_FLUSHER.event.set()

    def _transmit_all(self, batches: list[Batch]) -> None:
        """Sends batches; with each goes which steps those after it may refer to."""
        link = self._link
        lowest = [self._lowest_waiting()]
        for batch in reversed(batches[1:]):
            lowest.append(min(batch.lowest, lowest[-1]))
        for batch, keep in zip(batches, reversed(lowest), strict=False):
            if self._link is link:  # Else all go again by another.
                self._transmit(batch, keep)

    def _transmit(self, batch: Batch, keep: int) -> None:
        """Sends a batch, and the steps that the server does not have."""
        if self._link is None:
            return
        buffers = self._buffers
        refs = [group.refs for group in batch.groups]
        low = batch.lowest
        mask = np.zeros(batch.highest + 1 - low, bool)
        for r in refs:
            mask[r - low] = True
        if len(buffers.schema) != self._schema_length:
            buffers.forget_sent()
        steps, arrays = buffers.take_unsent(mask, low)
        meta: dict[str, Any] = {
            "keep": keep,
            "episode": self.episode,
            "groups": [group.description for group in batch.groups],
        }
        if len(buffers.schema) != self._schema_length:
            meta["schema"] = buffers.schema_description()
            self._schema_length = len(buffers.schema)
        arrays = [steps, *arrays]
        for group, r in zip(batch.groups, refs, strict=True):
            arrays += [r, group.priorities, group.numbers]
        try:
            self._link.send(wire.WRITE, meta, arrays)
        except errors.ConnectionLost:
            self._lose()
        except errors.ResourceExhaustedError as error:
            self._refuse(error, batch.last)

    def _receive_all(self) -> None:
        while self._link is not None and self._receive(0):
            pass

    def _receive(self, timeout: float | None) -> bool:
        """Handles the next message; returns whether there was one in time."""
        assert self._link is not None
        try:
            frame = self._link.receive(timeout)
        except errors.ReverbError:
            self._lose()
            return True
        if frame is None:
            return False
        if frame.kind == wire.CONFIRMED:
            self._confirm(int(frame.meta["confirmed"]))
        elif frame.kind == wire.ERROR:
            # Without a number it is about all; they would be refused again.
            number = int(frame.meta.get("confirmed", self._next_number - 1))
            self._refuse(errors.from_meta(frame.meta), number)
        return True

    def _confirm(self, number: int) -> None:
        while self._sent and self._sent[0].last <= number:
            self._sent.popleft()
        left = min(self._next_number - 1 - number, self.outstanding)
        self.outstanding = max(left, 0) if self._sent else 0

    def _refuse(self, error: Exception, number: int) -> None:
        """Gives up on items up to a number."""
        self.problem = error
        self._confirm(number)
        self._buffers.forget_sent()  # Maybe the steps were not taken, either.

    def _lose(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        self._reconnect()

    def _reconnect(self) -> None:
        """Starts to connect again, beside what else goes on."""
        if self._thread is None and not self.is_closed:
            self._thread = threading.Thread(target=self._find_server, daemon=True)
            self._thread.start()

    def _find_server(self) -> None:
        link, problem = None, None
        try:
            link = self._connect({"writer_id": self._id})
        except Exception as error:
            problem = error
        with self.lock:
            self._thread = None
            if link is None:
                self.problem = problem
            elif self.is_closed:
                link.close()
            else:
                self._install(link)
            self._changed.notify_all()
