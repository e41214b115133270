"""Handles requests to insert items."""

from __future__ import annotations

import collections
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving.requests import (
    AGAIN,
    DONE,
    Caller,
    Continuation,
    Request,
)
from tfrl.replay_service.engine.serving.service import SLICE, Service, TableWaitQueues
from tfrl.replay_service.engine.storage.layouts import Layout
from tfrl.replay_service.transport import wire

_NO_SLOTS = np.empty(0, np.int32)


class Confirmations:
    """Tells a session's client which of its items are inserted.

    Attributes:
      record: The record of the writer, which outlives the session.
    """

    def __init__(self, caller: Caller, record: Any):
        """Assumes that the client knows of all items that the record confirms.

        Args:
          caller: The session.
          record: See the attribute.
        """
        self.record = record
        self._caller = caller
        self._sent = record.confirmed

    def send(self, always: bool = False) -> None:
        """Sends the number of the last inserted item, if it is new or `always`."""
        if always or self.record.confirmed != self._sent:
            self._sent = self.record.confirmed
            self._caller.send(wire.CONFIRMED, {"confirmed": self._sent})

    def send_error(self, error: Exception) -> None:
        """Sends the number of the last inserted item with an error."""
        self._sent = self.record.confirmed
        self._caller.send_error(error, confirmed=self._sent)


class Write(Request):
    """A request to store steps and to insert items."""

    def __init__(
        self,
        service: Service,
        confirmations: Confirmations,
        storing: Generator[None, None, None],
        groups: list[ItemGroup],
        forgetting: Callable[[], Iterator[None]],
    ):
        """Creates a request to store steps, and then to insert items.

        Args:
          service: The state that all sessions share.
          confirmations: Tells the client which items are inserted.
          storing: Stores the steps, in slices.
          groups: The items to insert, in order.
          forgetting: Releases steps afterwards, in slices; it is called again after
            each slice.
        """
        self._service = service
        self._confirmations = confirmations
        self._storing: Generator[None, None, None] | None = storing
        self._groups = collections.deque(groups)
        self._forgetting = forgetting
        self._has_waited = False

    def advance(self, woken: bool) -> Continuation | collections.deque[Caller]:
        """Stores a part of the steps; then inserts items, as the rate limiters allow.

        Args:
          woken: Whether it is this request's turn among the waiting requests.
        """
        if self._storing is not None:
            for _ in self._storing:
                return AGAIN
            self._storing = None
        outcome = self._insert(woken)
        if outcome is not None:
            return outcome
        for _ in self._forgetting():
            return AGAIN
        self._confirmations.send(always=True)
        return DONE

    def _insert(self, woken: bool) -> Continuation | collections.deque[Caller] | None:
        """Inserts items; returns None if all are inserted, else `advance`'s result."""
        budget = SLICE
        while self._groups:
            group = self._groups[0]
            queues = group.queues
            if group.problem is not None:
                self._refuse(group)
            elif group.skip_confirmed() and queues is not None:
                if budget <= 0:
                    return AGAIN
                if queues.inserters and not woken:
                    queues.changed()
                    return self._wait(queues)
                most = min(group.left, group.most_together)
                room = queues.table.insertable(min(most, budget))
                if not room:
                    return self._wait(queues)
                budget -= SLICE if room == group.most_together else room
                try:
                    group.insert(room, self._service)
                except (ValueError, errors.ResourceExhaustedError) as error:
                    # For example, a priority to a too large power.
                    group.problem = error
                woken = woken and not queues.inserters
                continue
            self._groups.popleft()
        return None

    def close(self) -> None:
        """Releases the steps that have not been stored completely."""
        if self._storing is not None:
            self._storing.close()
            self._storing = None

    def _wait(self, queues: TableWaitQueues) -> collections.deque[Caller]:
        self._confirmations.send()
        if not self._has_waited:
            self._has_waited = True
            for group in self._groups:
                group.detach()
        return queues.inserters

    def _refuse(self, group: ItemGroup) -> None:
        """Drops a group; confirms its items, so that they are not sent again."""
        assert group.problem is not None
        group.drop()
        self._confirmations.send_error(group.problem)


class ItemGroup:
    """Items of one layout that are to be inserted into one table.

    Attributes:
      target: The table's name, the columns, and the lengths of the ranges of steps.
      refs: int64 `[n, W]`, the numbers of the items' steps, until `bind`.
      priorities: float64 `[n]`.
      problem: The reason to refuse the items, or None.
      queues: The table with its queues, after `bind`.
      layout: The layout of the items, after `bind`.
      slots: int32 `[n, W]`, the slots of the items' steps, after `bind`.
    """

    def __init__(
        self,
        record: Any,
        target: tuple[Any, tuple[tuple[Any, ...], ...], tuple[Any, ...]],
        refs: np.ndarray,
        priorities: np.ndarray,
        numbers: np.ndarray,
        episode: int,
    ):
        """Creates a group whose table and steps are not known yet.

        Args:
          record: The record of the writer.
          target: See the attribute.
          refs: See the attribute.
          priorities: See the attribute.
          numbers: int64 `[n]`, the numbers of the items, ascending.
          episode: The number of the items' episode.
        """
        self.target = target
        self.refs = refs
        self.priorities = priorities
        self.problem: Exception | None = None
        self.queues: TableWaitQueues | None = None
        self.layout: Layout | None = None
        self.slots = _NO_SLOTS
        self._record = record
        self._numbers = numbers
        self._episode = episode
        self._next = 0

    @property
    def left(self) -> int:
        """The number of items that are left to insert."""
        return len(self._numbers) - self._next

    @property
    def most_together(self) -> int:
        """The largest number of items to insert together."""
        assert self.layout is not None
        return self.layout.items_per_slice

    def skip_confirmed(self) -> int:
        """Skips items that an earlier session inserted; returns the number left."""
        if self.left and self._numbers[self._next] <= self._record.confirmed:
            self._next = int(
                self._numbers.searchsorted(self._record.confirmed, "right")
            )
        return self.left

    def insert(self, count: int, service: Service) -> None:
        """Inserts the next `count` items, which the rate limiter allows."""
        assert self.queues is not None
        assert self.layout is not None
        part = slice(self._next, self._next + count)
        payloads = service.layouts.add(self.layout, self.slots[part])
        episodes = np.full(count, self._episode, np.int64)
        try:
            removed = self.queues.table.insert(
                self.priorities[part], payloads, episodes
            )
        except ValueError:
            service.layouts.remove(payloads)
            raise
        self._next += count
        self._record.confirmed = int(self._numbers[self._next - 1])
        service.remove(removed)
        self.queues.changed()

    def bind(self, slots: np.ndarray) -> None:
        """Sets the slots of the items' steps, int32 `[n, W]`."""
        self.slots = slots
        self.refs = _NO_SLOTS  # The arrays are part of a possibly large message.

    def detach(self) -> None:
        """Copies the arrays, which are parts of a possibly large message."""
        self.priorities = self.priorities.copy()
        self._numbers = self._numbers.copy()

    def drop(self) -> None:
        """Drops all remaining items by confirming them."""
        self._record.confirmed = max(self._record.confirmed, int(self._numbers[-1]))
