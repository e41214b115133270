"""Handles requests to describe, reset, change or checkpoint tables."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator

import numpy as np
from typing_extensions import override

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving.requests import (
    DONE,
    PARKED,
    Caller,
    Continuation,
    Request,
    SlicedRequest,
    check_array,
    priorities_error,
)
from tfrl.replay_service.engine.serving.service import Service, TableWaitQueues
from tfrl.replay_service.transport import wire

_CHECKED, _DELETED, _UPDATED = 1 << 15, 1 << 11, 1 << 12  # Keys of a slice.


def info(service: Service, caller: Caller, _frame: wire.Frame) -> None:
    """Replies with the `TableInfo` of every table."""
    caller.send(wire.INFO_REPLY, {"tables": service.info()})


def reset(service: Service, caller: Caller, frame: wire.Frame) -> None:
    """Removes all items of a table. Their steps are released in the background."""
    queues = _find(service, caller, frame)
    if queues is not None:
        service.background.add(_removing(service, queues.table.reset()))
        queues.changed()
        caller.send(wire.OK, {})


def mutate(service: Service, caller: Caller, frame: wire.Frame) -> SlicedRequest | None:
    """Deletes items of a table, and updates the priorities of other items."""
    queues = _find(service, caller, frame)
    if queues is None:
        return None
    keys, priorities, deleted = frame.arrays
    check_array(keys, np.uint64, (None,))
    check_array(priorities, np.float64, keys.shape)
    check_array(deleted, np.uint64, (None,))
    if len(keys) > _UPDATED or len(deleted) > _DELETED:
        slices = _mutating(service, caller, queues, keys, priorities, deleted)
        return SlicedRequest(slices)
    error = priorities_error(queues.table.name, priorities)
    if error is None:
        try:
            _mutate(service, queues, keys, priorities, deleted)
        except ValueError as raised:  # For example, a priority to a too large power.
            error = raised
    if error is None:
        caller.send(wire.OK, {})
    else:
        caller.send_error(error)
    return None


def _mutating(
    service: Service,
    caller: Caller,
    queues: TableWaitQueues,
    keys: np.ndarray,
    priorities: np.ndarray,
    deleted: np.ndarray,
) -> Generator[None, None, None]:
    """Changes a table in slices; other sessions have their turns between them."""
    for part in _slices(len(priorities), _CHECKED):
        error = priorities_error(queues.table.name, priorities[part])
        try:
            queues.table.check(priorities[part])
        except ValueError as raised:
            error = error or raised
        if error is not None:
            caller.send_error(error)
            return
        yield
    for part in _slices(len(deleted), _DELETED):
        _mutate(service, queues, keys[:0], priorities[:0], deleted[part])
        yield
    for part in _slices(len(keys), _UPDATED):
        _mutate(service, queues, keys[part], priorities[part], deleted[:0])
        yield
    caller.send(wire.OK, {})


def _mutate(
    service: Service,
    queues: TableWaitQueues,
    keys: np.ndarray,
    priorities: np.ndarray,
    deleted: np.ndarray,
) -> None:
    removed = queues.table.mutate(keys, priorities, deleted)
    if len(deleted):
        service.remove(removed)
        queues.changed()


def _removing(service: Service, removed: Iterable[np.ndarray]) -> Iterator[None]:
    """Releases the steps of a table's former items, in slices."""
    for payloads in removed:
        yield from service.layouts.removing(payloads)
        yield


def _slices(length: int, step: int) -> Iterator[slice]:
    for start in range(0, length, step):
        yield slice(start, start + step)


def checkpoint(service: Service, caller: Caller, _frame: wire.Frame) -> Checkpoint:
    """Starts to write a checkpoint."""
    return Checkpoint(service, caller)


class Checkpoint(Request):
    """A request for a checkpoint."""

    def __init__(self, service: Service, caller: Caller):
        """Starts to write the checkpoint.

        Args:
          service: The state to write.
          caller: The session that gets the answer.
        """
        self._caller = caller
        self._events = service.events
        self._started = caller.now()
        self._task = asyncio.create_task(service.checkpoint())
        self._task.add_done_callback(lambda _: caller.proceed())

    @override
    def advance(self, woken: bool) -> Continuation:
        """Answers when the checkpoint is written."""
        if not self._task.done():
            return PARKED
        error = self._task.exception()
        if error is None:
            seconds = self._caller.now() - self._started
            self._events.wrote_checkpoint(self._task.result(), seconds)
            self._caller.send(wire.OK, {"path": self._task.result()})
            return DONE
        self._events.failed_checkpoint(error)
        if isinstance(error, errors.ReverbError):
            self._caller.send_error(error)
        else:
            text = f"The checkpoint could not be written: {error}."
            self._caller.send_error(errors.ReverbError(text))
        return DONE


def _find(
    service: Service, caller: Caller, frame: wire.Frame
) -> TableWaitQueues | None:
    """Returns the requested table with its queues; without one, sends an error."""
    try:
        return service.queues_of(frame.meta["table"])
    except RuntimeError as error:
        caller.send_error(error)
        return None
