"""Handles requests to describe, reset, change or checkpoint tables."""

from __future__ import annotations

import asyncio

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving.requests import (
    DONE,
    PARKED,
    Caller,
    Outcome,
    Request,
    check_array,
    priorities_error,
)
from tfrl.replay_service.engine.serving.service import Service, TableWaitQueues
from tfrl.replay_service.transport import wire


def info(service: Service, caller: Caller, frame: wire.Frame) -> None:
    """Replies with the `TableInfo` of every table."""
    caller.send(wire.INFO_REPLY, {"tables": service.info()})


def reset(service: Service, caller: Caller, frame: wire.Frame) -> None:
    """Removes all items of a table."""
    queues = _find(service, caller, frame)
    if queues is not None:
        service.layouts.remove(queues.table.reset())
        queues.changed()
        caller.send(wire.OK, {})


def mutate(service: Service, caller: Caller, frame: wire.Frame) -> None:
    """Deletes items of a table, and updates the priorities of other items."""
    queues = _find(service, caller, frame)
    if queues is None:
        return
    keys, priorities, deleted = frame.arrays
    check_array(keys, np.uint64, (None,))
    check_array(priorities, np.float64, keys.shape)
    check_array(deleted, np.uint64, (None,))
    error = priorities_error(queues.table.name, priorities)
    if error is None:
        try:
            removed = queues.table.mutate(keys, priorities, deleted)
        except ValueError as raised:  # For example, a priority to a too large power.
            error = raised
    if error is not None:
        caller.send_error(error)
        return
    if len(deleted):
        service.layouts.remove(removed)
        queues.changed()
    caller.send(wire.OK, {})


def checkpoint(service: Service, caller: Caller, frame: wire.Frame) -> Checkpoint:
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
        self._task = asyncio.create_task(service.checkpoint())
        self._task.add_done_callback(lambda _: caller.proceed())

    def advance(self, woken: bool) -> Outcome:
        """Answers when the checkpoint is written."""
        if not self._task.done():
            return PARKED
        error = self._task.exception()
        if error is None:
            self._caller.send(wire.OK, {"path": self._task.result()})
        elif isinstance(error, errors.ReverbError):
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
