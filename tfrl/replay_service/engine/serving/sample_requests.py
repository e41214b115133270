"""Handles requests for samples."""

from __future__ import annotations

import collections
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving.requests import (
    AGAIN,
    DONE,
    Caller,
    Continuation,
    Request,
    check_count,
)
from tfrl.replay_service.engine.serving.service import SLICE, Service, TableWaitQueues
from tfrl.replay_service.engine.storage.layouts import Layout
from tfrl.replay_service.engine.storage.step_store import StepStore
from tfrl.replay_service.transport import wire

_LARGE = 16 << 20  # Maximum bytes of data in one message, unless one item is larger.
_MAX_PINS = 4096
_PINS_PER_SLICE = 32
_FIRST_DRAW = 16
_MAX_DEFINITIONS = 1024  # Layouts that a client should know; it keeps twice as many.


class Sampler:
    """The sampling state of a session: its unreleased samples and known layouts.

    Attributes:
      service: The state that all sessions share.
      caller: The session.
      pins: The slots of each message that the client reads from the server's memory and
        has not released yet, oldest first.
      items_per_draw: The number of items to draw together, so that drawing does not
        delay the server's other clients.
    """

    def __init__(self, service: Service, caller: Caller):
        """Creates the state of a session without samples.

        Args:
          service: See the attribute.
          caller: See the attribute.
        """
        self.service = service
        self.caller = caller
        self.pins: collections.deque[tuple[StepStore, np.ndarray]] = collections.deque()
        # The number of items to draw together; small until their width is known.
        self.items_per_draw = _FIRST_DRAW
        self._known: set[int] = set()  # The ids of the layouts that the client knows.

    def request(self, meta: Mapping[str, Any]) -> Sample | None:
        """Returns the request in a message, or None if it has been answered already."""
        self.release(meta.get("release", 0))
        try:
            queues = self.service.queues_of(meta["table"])
        except RuntimeError as error:
            self.caller.send_error(error, request=meta["request"])
            return None
        return Sample(self, queues, meta)

    def release(self, count: Any) -> None:
        """Releases the slots of the `count` oldest messages.

        Raises:
          ProtocolError: If there are fewer messages.
        """
        if check_count(count, "release") > len(self.pins):
            raise errors.ProtocolError(
                f"Got a release of {count} messages, expected at most {len(self.pins)}."
            )
        for _ in range(count):
            store, slots = self.pins.popleft()
            store.release(slots)

    def definition(self, layout: Layout) -> dict[str, Any] | None:
        """Returns a layout's definition, or None if the client knows it already."""
        if layout.id in self._known:
            return None
        if len(self._known) >= _MAX_DEFINITIONS:
            self._known.clear()
        self._known.add(layout.id)
        return layout.definition()

    def reads_memory(self, layout: Layout) -> bool:
        """Returns whether the client reads a layout's steps from shared memory."""
        return self.caller.shared and layout.store.fd is not None

    def items_per_message(self, layout: Layout) -> int:
        """Returns the number of items in one message.

        Raises:
          ResourceExhaustedError: If one item is too large for a message.
        """
        if self.reads_memory(layout):
            return layout.items_per_slice
        size = layout.item_bytes
        if size > wire.MAX_FRAME - (1 << 16):
            raise errors.ResourceExhaustedError(
                f"An item of {size} bytes is too large for a message of at most "
                f"{wire.MAX_FRAME}: insert shorter trajectories, or sample on the "
                "server's host, where the data is not sent."
            )
        return max(1, _LARGE // max(size, 1))

    def close(self) -> None:
        """Releases the slots of all messages."""
        pins, self.pins = self.pins, collections.deque()
        self.service.background.add(_releasing(pins))


class _Piece(NamedTuple):
    """Samples of one layout that fit into one message."""

    layout: Layout
    slots: np.ndarray
    info: tuple[np.ndarray, ...]


class Sample(Request):
    """A request for samples."""

    def __init__(
        self, sampler: Sampler, queues: TableWaitQueues, meta: Mapping[str, Any]
    ):
        """Creates a request from a SAMPLE message.

        Args:
          sampler: The session's state.
          queues: The table, with its queues.
          meta: The JSON object of the message.

        Raises:
          ProtocolError: If the message is malformed.
        """
        self._sampler = sampler
        self._caller = sampler.caller
        self._layouts = sampler.service.layouts
        self._queues = queues
        self._request = check_count(meta["request"], "request")
        self._left = check_count(meta["num"], "num", 1)
        timeout = check_count(meta["timeout_ms"], "timeout_ms", -1)
        self._timeout = None if timeout < 0 else timeout / 1000
        self._waits_until: float | None = None
        self._pieces: collections.deque[_Piece] = collections.deque()
        self._sending: Generator[None, None, None] | None = None

    def advance(self, woken: bool) -> Continuation | collections.deque[Caller]:
        """Draws samples if the table allows it, and sends a part of a message.

        Args:
          woken: Whether it is this request's turn among the waiting requests.
        """
        if self._sending is None:
            if not self._pieces:
                queue = self._draw(woken)
                if queue is not None:
                    return queue
            self._sending = self._send(self._pieces.popleft())
        for _ in self._sending:
            return AGAIN
        self._sending = None
        return AGAIN if self._pieces or self._left else DONE

    def _draw(self, woken: bool) -> Continuation | collections.deque[Caller] | None:
        """Draws samples; returns None, or the result of `advance` if there are none."""
        queues = self._queues
        if queues.samplers and not woken and self._timeout != 0:
            queues.changed()
            return self._wait()
        drawn = queues.table.sample(min(self._left, self._sampler.items_per_draw))
        if not len(drawn.keys):
            return self._wait()
        self._waits_until = None
        self._left -= len(drawn.keys)
        try:
            self._take(drawn)
        finally:
            self._sampler.service.remove(drawn.removed)
            queues.changed()
        return None

    def expire(self) -> None:
        """Ends the request because its time limit is over."""
        self._caller.send(
            wire.SAMPLES, {"request": self._request, "done": True, "end": "timeout"}
        )

    def close(self) -> None:
        """Releases the slots of samples that were not sent."""
        if self._sending is not None:
            self._sending.close()
            self._sending = None
        for piece in self._pieces:
            piece.layout.store.release(piece.slots)
        self._pieces.clear()

    def _wait(self) -> Continuation | collections.deque[Caller]:
        if self._timeout == 0:
            self.expire()
            return DONE
        if self._timeout is not None:
            now = self._caller.now()
            if self._waits_until is None:
                self._waits_until = now + self._timeout
            self._caller.wait_until(self._waits_until - now)
        return self._queues.samplers

    def _take(self, drawn: Any) -> None:
        """Retains the steps of drawn items, even if the table has deleted the items."""
        info = (
            drawn.keys,
            drawn.probabilities,
            drawn.table_sizes,
            drawn.priorities,
            drawn.times_sampled,
        )
        self._sampler.items_per_draw = SLICE
        for start, stop in _runs(drawn.payloads[:, 0]):
            layout = self._layouts.get(drawn.payloads[start, 0])
            self._sampler.items_per_draw = min(
                self._sampler.items_per_draw, layout.items_per_slice
            )
            step = self._sampler.items_per_message(layout)
            slots = layout.slots(drawn.payloads[start:stop, 1])
            layout.store.retain(slots)
            for first in range(0, stop - start, step):
                part = slice(start + first, min(start + first + step, stop))
                self._pieces.append(
                    _Piece(
                        layout,
                        slots[first : first + step],
                        tuple(array[part] for array in info),
                    )
                )

    def _send(self, piece: _Piece) -> Generator[None, None, None]:
        """Sends a message, whose data is gathered in slices."""
        meta: dict[str, Any] = {
            "request": self._request,
            "layout": piece.layout.id,
            "done": not (self._pieces or self._left),
        }
        definition = self._sampler.definition(piece.layout)
        if definition is not None:
            meta["define"] = definition
        store = piece.layout.store
        if self._sampler.reads_memory(piece.layout):
            pins = self._sampler.pins
            if len(pins) >= _MAX_PINS:
                store.release(piece.slots)
                raise errors.ProtocolError(
                    f"The client has not released {_MAX_PINS} messages with samples."
                )
            pins.append((store, piece.slots))
            data = [piece.slots]
        else:
            try:
                allocate = self._sampler.service.memory.allocate
                data = yield from piece.layout.gathering(piece.slots, allocate)
            finally:
                store.release(piece.slots)
        self._caller.send(wire.SAMPLES, meta, (*piece.info, *data))


def _releasing(pins: Iterable[tuple[StepStore, np.ndarray]]) -> Iterator[None]:
    """Releases the slots of messages, in slices."""
    for count, (store, slots) in enumerate(pins, start=1):
        yield from store.releasing(slots)
        if count % _PINS_PER_SLICE == 0:
            yield


def _runs(layouts: np.ndarray) -> list[tuple[int, int]]:
    """Returns the bounds of each run of equal numbers."""
    if (layouts == layouts[0]).all():
        return [(0, len(layouts))]
    changes = (np.flatnonzero(layouts[1:] != layouts[:-1]) + 1).tolist()
    return list(zip([0, *changes], [*changes, len(layouts)], strict=True))
