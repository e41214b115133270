"""What a session answers at once: of tables as a whole, and of single items."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving.requests import (
    DONE,
    PARKED,
    Outcome,
    check_array,
    priorities_error,
)
from tfrl.replay_service.engine.serving.service import ServedTable
from tfrl.replay_service.transport import wire

if TYPE_CHECKING:
    from tfrl.replay_service.engine.serving.sessions import Session


def info(session: Session, frame: wire.Frame) -> None:
    """Tells of all tables."""
    session.send(wire.INFO_REPLY, {"tables": session.service.info()})


def reset(session: Session, frame: wire.Frame) -> None:
    """Empties a table."""
    served = _served(session, frame)
    if served is not None:
        session.service.layouts.remove(served.table.reset())
        served.changed()
        session.send(wire.OK, {})


def mutate(session: Session, frame: wire.Frame) -> None:
    """Deletes items of a table, and sets priorities of others."""
    served = _served(session, frame)
    if served is None:
        return
    keys, priorities, deleted = frame.arrays
    check_array(keys, np.uint64, (None,))
    check_array(priorities, np.float64, keys.shape)
    check_array(deleted, np.uint64, (None,))
    error = priorities_error(served.table.name, priorities)
    if error is None:
        try:
            removed = served.table.mutate(keys, priorities, deleted)
        except ValueError as raised:  # Such as a priority to a power too high.
            error = raised
    if error is not None:
        session.send_error(error)
        return
    if len(deleted):
        session.service.layouts.remove(removed)
        served.changed()
    session.send(wire.OK, {})


def checkpoint(session: Session, frame: wire.Frame) -> Checkpoint:
    """Has a checkpoint written."""
    return Checkpoint(session)


class Checkpoint:
    """A request for a checkpoint."""

    def __init__(self, session: Session):
        """Starts to write it."""
        self._session = session
        self._task = asyncio.create_task(session.service.checkpoint())
        self._task.add_done_callback(lambda _: session.proceed())

    def advance(self, woken: bool) -> Outcome:
        """Answers if the checkpoint has been written."""
        if not self._task.done():
            return PARKED
        error = self._task.exception()
        if error is None:
            self._session.send(wire.OK, {"path": self._task.result()})
        else:
            text = f"The checkpoint could not be written: {error}."
            self._session.send_error(errors.ReverbError(text))
        return DONE

    def close(self) -> None:
        """The checkpoint is written all the same."""


def _served(session: Session, frame: wire.Frame) -> ServedTable | None:
    """Returns the table that a request names, or answers that there is none."""
    try:
        return session.service.served(frame.meta["table"])
    except RuntimeError as error:
        session.send_error(error)
        return None
