"""Sends requests to a server one by one, and returns the answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.transport import connection as connections
from tfrl.replay_service.transport import deadlines, wire

_TRIES = 2


class ControlConnection:
    """A connection of role "control", which is opened for the first request.

    All threads may use it. Concurrent requests wait for each other.
    """

    def __init__(self, connect: Callable[[float | None], connections.Connection]):
        """Stores the function that connects, without connecting.

        Args:
          connect: Returns a new connection. Its argument is the number of seconds to
            keep trying, or None for the client's default.
        """
        self._connect = connect
        self._lock = threading.Lock()
        self._link: connections.Connection | None = None

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
        with self._lock:
            for left in reversed(range(_TRIES)):
                try:
                    return self._request(kind, meta, arrays, deadline)
                except errors.ConnectionLost:
                    self._drop()
                    if not left:
                        raise
                except errors.ProtocolError:
                    self._drop()
                    raise
        raise AssertionError

    def tables(self) -> dict[str, Any]:
        """Returns the tables in the server's answer to the greeting.

        Raises:
          ReplayUnavailable: If no server answers.
        """
        with self._lock:
            return self._connected(None).welcome["tables"]

    def close(self) -> None:
        """Closes the connection. A later request opens a new one."""
        self._drop()

    def after_fork(self) -> None:
        """Abandons the parent's connection and its lock, which may be held."""
        self._lock = threading.Lock()
        self._link = None

    def _request(
        self,
        kind: int,
        meta: Mapping[str, Any],
        arrays: Sequence[np.ndarray],
        deadline: float | None,
    ) -> dict[str, Any]:
        link = self._connected(deadline)
        link.send(kind, meta, arrays)
        try:
            frame = link.receive(deadlines.remaining(deadline))
        except BaseException:
            # A late answer would be taken for the answer to the next request.
            self._drop()
            raise
        if frame is None:
            self._drop()
            raise errors.DeadlineExceededError("The server did not answer in time.")
        if frame.kind == wire.ERROR:
            raise errors.from_meta(frame.meta)
        return frame.meta

    def _connected(self, deadline: float | None) -> connections.Connection:
        if self._link is None:
            self._link = self._connect(deadlines.remaining(deadline))
        return self._link

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()
