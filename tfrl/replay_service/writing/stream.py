"""Sends a writer's items to a server exactly once, even if connections are lost."""

from __future__ import annotations

import collections
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.transport import connection as connections
from tfrl.replay_service.transport import deadlines, wire
from tfrl.replay_service.writing.background_flusher import BACKGROUND_FLUSHER
from tfrl.replay_service.writing.buffers import StepBuffers
from tfrl.replay_service.writing.items import (
    Group,
    GroupLayouts,
    MessageGroups,
    split_groups,
)

BATCH = 64  # Maximum number of items per message.
_BATCH_BYTES = 4 << 20  # Maximum bytes of steps to collect before items are sent.
_LARGE = 64 << 10  # Bytes from which an extra message is worth its cost.
_MESSAGE_BYTES = 8 << 20  # Maximum bytes of steps per message, unless a step has more.
_DELAY = 0.05  # Maximum seconds that an item waits for further items.

Connect = Callable[[dict[str, Any]], connections.Connection]


class WriterStream:
    """Sends a writer's items, and keeps them until the server has confirmed them.

    Callers must hold `lock`, except for the constructor, `next_episode`, `flush`,
    `close` and `tick`.

    Attributes:
      lock: Protects the items. `tick` returns immediately if another thread holds it.
      count: The number of items that have not been sent.
      outstanding: The number of items that have been sent but not confirmed.
      group: The group that is open for more items, or None.
      problem: The error that the writer raises at its next call, or None.
      is_closed: Whether the stream is closed.
      episode: The number of the current episode.
    """

    def __init__(self, connect: Connect, buffers: StepBuffers, layouts: GroupLayouts):
        """Connects to the server.

        Args:
          connect: Returns a connection, given additional fields for the greeting.
          buffers: The steps of the writer.
          layouts: The layouts of the items.

        Raises:
          ReplayUnavailable: If no server answers.
        """
        self._connect = connect
        self._buffers = buffers
        self._layouts = layouts
        self._groups: list[Group] = []
        self._sent: collections.deque[MessageGroups] = collections.deque()
        self._link: connections.Connection | None = None
        self._thread: threading.Thread | None = None  # Set while the stream reconnects.
        self.group: Group | None = None
        self.count = self.outstanding = 0
        self.problem: Exception | None = None
        self.is_closed = False
        self.episode = 0
        self._next_number = 1
        self._since = 0.0  # The time at which the first waiting item was created.
        self._next_end = 0  # The number of steps at which to send.
        self._start()
        self._install(connect({"writer_id": self._id}))
        BACKGROUND_FLUSHER.add(self)

    def open_group(self, group: Group) -> None:
        """Starts a group for the next items."""
        self._groups.append(group)
        self.group = group

    def added(self, number: int = 1) -> None:
        """Counts items added to the open group; sends the batch if it is full."""
        if not self.count:
            self._since = time.monotonic()
            rows = _BATCH_BYTES // max(self._buffers.step_bytes, 1)
            self._next_end = self._buffers.end + max(rows, 1)
            if not BACKGROUND_FLUSHER.event.is_set():
                BACKGROUND_FLUSHER.event.set()
        self.count += number
        if self.count >= BATCH or self._buffers.end >= self._next_end:
            self.send()
            self._receive_all()

    def next_episode(self) -> None:
        """Assigns the next items to a new episode.

        This needs no lock, because only the writer's own thread opens groups. With a
        lock, `end_episode` could wait beyond its timeout.
        """
        self.episode += 1
        self.group = None

    def send(self) -> None:
        """Sends all waiting items if there is a connection. Never waits."""
        if not self.count:
            return
        if self._link is None:
            self._reconnect()
            return
        waiting = self._groups
        self._groups, self.group, self.count = [], None, 0
        # Many items may be waiting after a time without a connection.
        batches = []
        try:
            for groups in split_groups(waiting, BATCH, len(self._buffers.schema)):
                batches.append(MessageGroups(groups, self._next_number))
                self._next_number = batches[-1].last + 1
        except MemoryError as error:
            self.problem = error
        self.outstanding += sum(batch.left for batch in batches)
        self._sent.extend(batches)
        self._transmit_all(batches)

    @property
    def _is_large(self) -> bool:
        """Whether waiting items are large enough to be sent before a batch is full."""
        return self.count * self._buffers.step_bytes > _LARGE

    def raise_problem(self) -> None:
        """Raises `problem`, if there is one, and clears it."""
        problem, self.problem = self.problem, None
        if problem is not None:
            raise problem

    def flush(self, limit: int, timeout: float | None) -> bool:
        """Waits until at most `limit` items are not confirmed.

        Args:
          limit: The maximum number of items that are not confirmed.
          timeout: The number of seconds to wait; None for no limit.

        Returns:
          True, or False if the time was up first.

        Raises:
          ReplayUnavailable: If the connection was lost and no server answers.
          Exception: The error with which the server refused an item.
        """
        deadline = deadlines.after(timeout)
        if not self.lock.acquire(timeout=-1 if timeout is None else timeout):
            return False
        try:
            return self._flush(limit, deadline)
        finally:
            self.lock.release()

    def close(self, timeout: float) -> None:
        """Sends the remaining items, waits for their confirmation, and disconnects.

        Args:
          timeout: The number of seconds to wait.
        """
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
        """Sends items that have waited long; returns whether to call `tick` again.

        Raises no error, because its thread serves other writers as well. The writer's
        next call raises the error.
        """
        if not self.lock.acquire(blocking=False):
            return True
        try:
            return self._tick()
        except Exception as error:
            self.problem = error
            self._lose()  # The state of the connection is not known.
            return False
        finally:
            self.lock.release()

    def _flush(self, limit: int, deadline: float | None) -> bool:
        while True:
            self.raise_problem()
            if self.count + self.outstanding <= limit:
                if self._is_large and 2 * self.count > limit:
                    self.send()  # The server can store these items meanwhile.
                    self._receive_all()
                return True
            if self.count and self._link is not None:
                self.send()
                continue
            remaining = deadlines.remaining(deadline)
            if remaining == 0:
                return False
            if self._link is not None:
                self._receive(remaining)
                continue
            self._reconnect()
            if self.problem is None:
                self._changed.wait(remaining)

    def _tick(self) -> bool:
        if self._link is None:
            if self.count:
                self._reconnect()
            return False
        if self.count and time.monotonic() - self._since > _DELAY:
            self.send()
        self._receive_all()
        return bool(self.count or self.outstanding)

    def lowest_needed(self) -> int:
        """Returns the first step that unconfirmed or future items can refer to."""
        return min([self._lowest_waiting(), *(batch.lowest for batch in self._sent)])

    def _lowest_waiting(self) -> int:
        """Returns the first step that unsent or future items can refer to."""
        waiting = [min(g.starts) + g.lowest for g in self._groups if g.starts]
        return min([self._buffers.oldest, *waiting])

    def after_fork(self) -> None:
        """Continues as a separate writer; the parent process sends existing items."""
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
        self._schema_length = 0  # The length of the schema that the server knows.

    def _install(self, link: connections.Connection) -> None:
        """Uses a new connection, and sends all unconfirmed items again over it."""
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

    def _transmit_all(self, batches: list[MessageGroups]) -> None:
        """Sends batches, each with the first step that later items can refer to."""
        link = self._link
        lowest = [self._lowest_waiting()]
        for batch in reversed(batches[1:]):
            lowest.append(min(batch.lowest, lowest[-1]))
        for batch, keep in zip(batches, reversed(lowest), strict=False):
            if self._link is link:  # Else a new connection sends all again.
                self._transmit(batch, keep)

    def _transmit(self, batch: MessageGroups, keep: int) -> None:
        """Sends a batch with the steps that the server does not have.

        A batch that cannot be sent is dropped, and the writer's next call raises the
        error.

        Args:
          batch: The items.
          keep: The first step that later items can refer to.
        """
        if self._link is None:
            return
        try:
            self._post_all(batch, keep)
        except errors.ConnectionLost:
            self._lose()
        except errors.ResourceExhaustedError as error:
            hint = "A step is sent in one message: divide large arrays among steps."
            self._drop(batch, errors.ResourceExhaustedError(f"{error} {hint}"))
        except Exception as error:
            self._drop(batch, error)
            self._lose()  # A part of a message may have been sent.

    def _post_all(self, batch: MessageGroups, keep: int) -> None:
        """Sends the messages of a batch.

        The items are in one message. If the steps are too large for it, messages with
        only steps precede it.

        Args:
          batch: The items.
          keep: The first step that later items can refer to.
        """
        buffers = self._buffers
        refs = [group.refs for group in batch.groups]
        low = batch.lowest
        mask = np.zeros(batch.highest + 1 - low, bool)
        for r in refs:
            mask[r - low] = True
        if len(buffers.schema) != self._schema_length:
            buffers.forget_sent()
        rows = max(_MESSAGE_BYTES // max(buffers.step_bytes, 1), 1)
        start = 0
        while len(mask) - start > rows:
            steps, arrays = buffers.take_unsent(mask[start : start + rows], low + start)
            start += rows
            if len(steps):
                meta = {"keep": min(keep, low), "episode": self.episode, "groups": []}
                self._post(meta, [steps, *arrays])
        steps, arrays = buffers.take_unsent(mask[start:], low + start)
        arrays = [steps, *arrays]
        for group, r in zip(batch.groups, refs, strict=True):
            arrays += [r, group.priorities, group.numbers]
        meta = {
            "keep": keep,
            "episode": self.episode,
            "groups": [group.description for group in batch.groups],
        }
        self._post(meta, arrays)

    def _post(self, meta: dict[str, Any], arrays: Sequence[np.ndarray]) -> None:
        """Sends a message, with the schema if the server does not know it.

        Args:
          meta: The JSON object of the message.
          arrays: The arrays of the message.
        """
        assert self._link is not None
        schema = self._buffers.schema
        if len(schema) != self._schema_length:
            meta["schema"] = self._buffers.schema_description()
        self._link.send(wire.WRITE, meta, arrays)
        self._schema_length = len(schema)

    def _receive_all(self) -> None:
        while self._link is not None and self._receive(0):
            pass

    def _receive(self, timeout: float | None) -> bool:
        """Handles the next message; returns whether there was one in time."""
        assert self._link is not None
        try:
            frame = self._link.receive(timeout)
        except errors.ConnectionLost:
            self._lose()
            return True
        except errors.ReverbError as error:
            # The same items would have the same fate over another connection.
            self._refuse(error, self._next_number - 1)
            self._lose()
            return True
        if frame is None:
            return False
        if frame.kind == wire.CONFIRMED:
            self._confirm(int(frame.meta["confirmed"]))
        elif frame.kind == wire.ERROR:
            # An error without a number refers to all items.
            number = int(frame.meta.get("confirmed", self._next_number - 1))
            self._refuse(errors.from_meta(frame.meta), number)
        return True

    def _confirm(self, number: int) -> None:
        while self._sent:
            self.outstanding -= self._sent[0].confirm(number)
            if self._sent[0].left:
                break
            self._sent.popleft()

    def _refuse(self, error: Exception, number: int) -> None:
        """Drops the items up to `number`; the writer's next call raises the error."""
        self.problem = error
        self._confirm(number)
        self._buffers.forget_sent()  # The server may not have stored the steps.

    def _drop(self, batch: MessageGroups, error: Exception) -> None:
        """Drops a batch that was not sent; the writer's next call raises the error."""
        self.problem = error
        self._sent.remove(batch)
        self.outstanding -= batch.left
        self._buffers.forget_sent()  # The steps may have been marked, but not sent.

    def _lose(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        self._reconnect()

    def _reconnect(self) -> None:
        """Starts to reconnect in the background."""
        if self._thread is None and not self.is_closed:
            self._thread = threading.Thread(target=self._find_server, daemon=True)
            try:
                self._thread.start()
            except RuntimeError as error:  # No more threads can start.
                self._thread = None
                self.problem = error

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
                try:
                    self._install(link)
                except Exception as error:
                    self.problem = error
                    self._link = None
                    link.close()
            self._changed.notify_all()
