"""Sends requests to a server, and returns the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.transport import connection as connections
from tfrl.replay_service.transport import deadlines, idle_pool, wire


class ControlConnections:
    """Connections of role "control", which are opened for requests and used again.

    All threads may use it. Concurrent requests do not wait for each other: each has its
    own connection.
    """

    def __init__(self, connect: Callable[[float | None], connections.Connection]):
        """Stores the function that connects, without connecting.

        Args:
          connect: Returns a new connection. Its argument is the number of seconds to
            keep trying, or None for the client's default.
        """
        self._connect = connect
        self._idle = idle_pool.IdlePool[connections.Connection](
            connections.Connection.close
        )

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
        try:
            return self._request(kind, meta, arrays, deadline)
        except errors.ConnectionLost:
            self._idle.clear()  # The idle connections were probably lost as well.
            return self._request(kind, meta, arrays, deadline)

    def tables(self) -> dict[str, Any]:
        """Returns the tables in the server's answer to the greeting.

        Raises:
          ReplayUnavailable: If no server answers.
        """
        link = self._connected(None)
        self._idle.keep(link)
        return link.welcome["tables"]

    def close(self) -> None:
        """Closes the idle connections. A later request opens a new one."""
        self._idle.clear()

    def _request(
        self,
        kind: int,
        meta: Mapping[str, Any],
        arrays: Sequence[np.ndarray],
        deadline: float | None,
    ) -> dict[str, Any]:
        link = self._connected(deadline)
        try:
            link.send(kind, meta, arrays)
            frame = link.receive(deadlines.remaining(deadline))
        except BaseException:
            # A late answer would be mistaken for the answer to the next request.
            link.close()
            raise
        if frame is None:
            link.close()
            raise errors.DeadlineExceededError("The server did not answer in time.")
        self._idle.keep(link)
        if frame.kind == wire.ERROR:
            raise errors.from_meta(frame.meta)
        return frame.meta

    def _connected(self, deadline: float | None) -> connections.Connection:
        link = self._idle.take()
        if link is not None:
            return link
        remaining = deadlines.remaining(deadline)
        if remaining == 0:
            raise errors.DeadlineExceededError("No server answered in time.")
        return self._connect(remaining)
