"""What a session does for those who sample."""

from __future__ import annotations

import collections
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving.requests import (
    AGAIN,
    DONE,
    Caller,
    Outcome,
    Request,
    check_count,
)
from tfrl.replay_service.engine.serving.service import SLICE, Service, TableWaitQueues
from tfrl.replay_service.engine.storage.step_store import StepStore
from tfrl.replay_service.transport import wire
from tfrl.specs import dtype_names

_LARGE = 32 << 20  # Bytes of data after which samples go into another message.
_MAX_PINS = 4096
_MAX_DEFINITIONS = 1024  # That the client is taken to know; it keeps twice as many.


class Sampler:
    """What a session remembers for its samples.

    Attributes:
      service: What the session shares with the others.
      caller: The session.
      pins: The slots of the messages that the client, who reads them from the server's
        memory, has not released yet; oldest first.
    """

    def __init__(self, service: Service, caller: Caller):
        """Starts with nothing pinned."""
        self.service = service
        self.caller = caller
        self.pins: collections.deque[tuple[StepStore, np.ndarray]] = collections.deque()
        self._definitions: dict[int, dict[str, Any]] = {}
        self._item_bytes: dict[int, int] = {}

    def request(self, meta: Mapping[str, Any]) -> Sample | None:
        """Returns the request that a message makes, None if it has been answered."""
        self.release(meta.get("release", 0))
        try:
            queues = self.service.queues_of(meta["table"])
        except RuntimeError as error:
            self.caller.send_error(error, request=meta["request"])
            return None
        return Sample(self, queues, meta)

    def release(self, count: Any) -> None:
        """Lets go of what the `count` oldest messages hold.

        Raises:
          ProtocolError: If there are not as many.
        """
        if check_count(count, "release") > len(self.pins):
            raise errors.ProtocolError(
                f"{count} messages were released, of {len(self.pins)}."
            )
        for _ in range(count):
            store, slots = self.pins.popleft()
            store.release(slots)

    def definition(self, layout: int) -> dict[str, Any] | None:
        """Returns what the client has to be told of a layout, the first time."""
        if layout in self._definitions:
            return None
        found = self.service.layouts.definition(layout)
        if len(self._definitions) >= _MAX_DEFINITIONS:
            self._definitions.clear()
            self._item_bytes.clear()
        self._definitions[layout] = found
        return found

    def items_per_message(self, layout: int) -> int:
        """Returns how many items go into one message.

        Raises:
          ResourceExhaustedError: If one alone is too large.
        """
        if self.caller.shared:
            return SLICE
        size = self._item_bytes.get(layout)
        if size is None:
            size = _size_of(self.service.layouts.definition(layout))
            self._item_bytes[layout] = size
        return max(1, _LARGE // max(size, 1))

    def close(self) -> None:
        """Lets go of everything."""
        self.release(len(self.pins))


class _Piece(NamedTuple):
    """Samples of one layout that make a message."""

    layout: int
    slots: np.ndarray
    info: tuple[np.ndarray, ...]


class Sample(Request):
    """A request for samples."""

    def __init__(
        self, sampler: Sampler, queues: TableWaitQueues, meta: Mapping[str, Any]
    ):
        """Takes the request up; see SAMPLE.

        Raises:
          ProtocolError: If it is not as it should be.
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

    def advance(self, woken: bool) -> Outcome | collections.deque[Caller]:
        """Sends what there is to send now, at most one message.

        Args:
          woken: Whether it is this request's turn among those that wait.
        """
        if not self._pieces:
            queues = self._queues
            if queues.samplers and not woken and self._timeout != 0:
                queues.changed()
                return self._wait()
            drawn = queues.table.sample(min(self._left, SLICE))
            if not len(drawn.keys):
                return self._wait()
            self._waits_until = None
            self._left -= len(drawn.keys)
            try:
                self._take(drawn)
            finally:
                self._layouts.remove(drawn.removed)
                queues.changed()
        self._send(self._pieces.popleft())
        return AGAIN if self._pieces or self._left else DONE

    def expire(self) -> None:
        """Ends the request: it has waited long enough."""
        self._caller.send(
            wire.SAMPLES, {"request": self._request, "done": True, "end": "timeout"}
        )

    def close(self) -> None:
        """Lets go of what has not been sent."""
        for piece in self._pieces:
            self._layouts.store(piece.layout).release(piece.slots)
        self._pieces.clear()

    def _wait(self) -> Outcome | collections.deque[Caller]:
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
        """Holds the steps of what was drawn, some of which the table has removed."""
        info = (
            drawn.keys,
            drawn.probabilities,
            drawn.table_sizes,
            drawn.priorities,
            drawn.times_sampled,
        )
        for start, stop in _runs(drawn.payloads[:, 0]):
            layout = int(drawn.payloads[start, 0])
            step = self._sampler.items_per_message(layout)
            slots = self._layouts.slots(layout, drawn.payloads[start:stop, 1])
            self._layouts.store(layout).retain(slots)
            for first in range(0, stop - start, step):
                part = slice(start + first, min(start + first + step, stop))
                self._pieces.append(
                    _Piece(
                        layout,
                        slots[first : first + step],
                        tuple(array[part] for array in info),
                    )
                )

    def _send(self, piece: _Piece) -> None:
        meta: dict[str, Any] = {
            "request": self._request,
            "layout": piece.layout,
            "done": not (self._pieces or self._left),
        }
        definition = self._sampler.definition(piece.layout)
        if definition is not None:
            meta["define"] = definition
        store = self._layouts.store(piece.layout)
        if self._caller.shared:
            pins = self._sampler.pins
            if len(pins) >= _MAX_PINS:
                store.release(piece.slots)
                raise errors.ProtocolError(
                    f"{_MAX_PINS} messages with samples have not been released."
                )
            pins.append((store, piece.slots))
            data = [piece.slots]
        else:
            data = self._layouts.gather(piece.layout, piece.slots)
            store.release(piece.slots)
        self._caller.send(wire.SAMPLES, meta, (*piece.info, *data))


def _runs(layouts: np.ndarray) -> list[tuple[int, int]]:
    """Returns where runs of equal numbers start and stop."""
    if (layouts == layouts[0]).all():
        return [(0, len(layouts))]
    changes = (np.flatnonzero(layouts[1:] != layouts[:-1]) + 1).tolist()
    return list(zip([0, *changes], [*changes, len(layouts)], strict=True))


def _size_of(definition: Mapping[str, Any]) -> int:
    """Returns the bytes of an item of a layout.

    Raises:
      ResourceExhaustedError: If no message could hold them.
    """
    size = sum(
        definition["lengths"][column["range"]]
        * math.prod(column["shape"])
        * dtype_names.dtype_from_name(column["dtype"]).itemsize
        for column in definition["columns"]
    )
    if size > wire.MAX_FRAME - (1 << 16):
        raise errors.ResourceExhaustedError(
            f"An item of {size} bytes is too large for a message, which holds "
            f"{wire.MAX_FRAME}: insert shorter trajectories, or sample on the server's "
            "host, where the data is not sent."
        )
    return size
