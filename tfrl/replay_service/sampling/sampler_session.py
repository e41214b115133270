"""Connects a sample stream to its server, again if the connection is lost."""

from __future__ import annotations

import collections
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tfrl.replay_service import errors
from tfrl.replay_service.transport import addresses, wire
from tfrl.replay_service.transport import connection as connections

if TYPE_CHECKING:
    from tfrl.replay_service.transport.arena_view import ArenaView

# The client must keep more definitions than a server assumes that it knows. The number
# of views limits the number of open files.
_MOST_DEFINITIONS, _MOST_VIEWS = 2048, 64

_LOGGER = logging.getLogger("tfrl.replay_service")
_SHORT_LIFE = 1.0  # Seconds; a connection lost sooner counts as a failure.
_PAUSE = 0.05  # Seconds before another attempt after a failure.
_DYING = 0.2  # Seconds in which a process that closed its connections should end.


class SamplerSession:
    """A connection for sampling, with the layouts that the server has defined on it.

    Attributes:
      connection: The connection.
      shared: Whether samples are read from the server's memory.
      requests: The number of requests so far.
    """

    def __init__(self, connection: connections.Connection):
        """Creates a session.

        Args:
          connection: A new connection of role "sampler".
        """
        self.connection = connection
        self.shared = connection.shared
        self.requests = 0
        self._definitions: dict[int, dict[str, Any]] = {}
        self._views: collections.OrderedDict[Any, ArenaView] = collections.OrderedDict()

    def define(self, number: int, definition: dict[str, Any]) -> None:
        """Stores the definition of a layout. The server may repeat it later."""
        self._definitions.pop(number, None)
        self._definitions[number] = definition
        if len(self._definitions) > _MOST_DEFINITIONS:
            del self._definitions[next(iter(self._definitions))]

    def layout(self, number: int) -> tuple[dict[str, Any], ArenaView | None]:
        """Returns a layout's definition, and a view of the server's memory or None.

        There is no view if the data of samples is sent in messages: if `shared` is
        False, or the server does not have the steps in memory that clients can map.

        Raises:
          OSError: If the server's memory cannot be read.
        """
        definition = self._definitions[number]
        if not (self.shared and definition.get("mapped", True)):
            return definition, None
        schema = definition["schema"]
        view = self._views.get(schema)
        if view is None:
            view = self._views[schema] = self.connection.arena(schema)
            if len(self._views) > _MOST_VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(schema)
        return definition, view

    def sample(self, table: str, count: int, timeout_ms: int, release: int) -> None:
        """Requests samples.

        Args:
          table: The name of the table.
          count: The number of samples.
          timeout_ms: The number of milliseconds to wait for the table's rate limiter;
            -1 for no limit.
          release: The number of messages that have been copied since the last release.
        """
        self.requests += 1
        meta = {
            "table": table,
            "num": count,
            "timeout_ms": timeout_ms,
            "request": self.requests,
            "release": release,
        }
        self.connection.send(wire.SAMPLE, meta)

    def release(self, count: int) -> None:
        """Releases the `count` oldest messages, which have been copied."""
        self.connection.send(wire.RELEASE, {"release": count})

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close()


class Connector:
    """Connects, in a background thread if the caller has a deadline.

    Attributes:
      shared: Whether to read the server's memory if possible.
    """

    def __init__(
        self,
        address: str,
        token: str | None,
        tls_root_certificates: bytes | None,
        timeout: float,
    ):
        """Stores the arguments of `connection.connect`."""
        self.shared = True
        self._address = address
        self._token = token
        self._tls = tls_root_certificates
        self._timeout = timeout
        self._attempt: _Attempt | None = None
        self._connected_at = -math.inf
        self._give_up_at = math.inf

    def connect(self, deadline: float | None) -> SamplerSession | None:
        """Returns a new session, or None when the caller's time is up.

        Args:
          deadline: The `time.monotonic` at which this call must return; None for no
            limit. The next call continues an unfinished attempt.

        Raises:
          ReplayUnavailable: If no server answers.
          AuthenticationError: If the server expects another token.
        """
        if self._attempt is None:
            timeout = self._time_left()
            if deadline is None:
                return self._connected(self._connect(timeout))
            self._attempt = _Attempt(lambda: self._connect(timeout))
        wait = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        if not self._attempt.done.wait(wait):
            return None
        attempt, self._attempt = self._attempt, None
        if attempt.error is not None:
            raise attempt.error
        assert attempt.session is not None
        return self._connected(attempt.session)

    def lost(self, error: Exception) -> None:
        """Records that the session was lost; pauses if it was lost very soon."""
        now = time.monotonic()
        if now - self._connected_at > _SHORT_LIFE:
            self._give_up_at = now + self._timeout
            if addresses.death_of(self._address, wait=_DYING) is not None:
                return  # The next attempt to connect raises the error.
            _LOGGER.warning(
                "The replay server at %r is gone (%s): trying to reach it for up to "
                "%g s.",
                self._address,
                str(error).rstrip("."),
                self._timeout,
            )
        else:
            self._give_up_at = min(self._give_up_at, now + self._timeout)
            time.sleep(_PAUSE)

    def worked(self) -> None:
        """Records that the session works."""
        self._give_up_at = math.inf

    def abandon(self) -> None:
        """Closes the connection that the background thread may still make."""
        attempt = self._attempt
        if attempt is not None:
            attempt.abandon()

    def _time_left(self) -> float:
        left = min(self._timeout, self._give_up_at - time.monotonic())
        if left < 0:
            raise errors.ReplayUnavailable(
                f"The replay server at {self._address!r} lost every connection soon "
                f"after it was made, for {self._timeout:g} s: see its own messages."
            )
        return left

    def _connected(self, session: SamplerSession) -> SamplerSession:
        self._connected_at = time.monotonic()
        return session

    def _connect(self, timeout: float) -> SamplerSession:
        return SamplerSession(
            connections.connect(
                self._address,
                "sampler",
                token=self._token,
                tls=self._tls,
                timeout=timeout,
                shared=self.shared,
            )
        )


class _Attempt:
    """A thread that connects, and its result."""

    def __init__(self, connect: Callable[[], SamplerSession]):
        self.done = threading.Event()
        self.session: SamplerSession | None = None
        self.error: BaseException | None = None
        self._abandoned = False
        self._lock = threading.Lock()
        threading.Thread(target=self._run, args=(connect,), daemon=True).start()

    def abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            if self.session is not None:
                self.session.close()

    def _run(self, connect: Callable[[], SamplerSession]) -> None:
        try:
            session = connect()
        except BaseException as error:
            self.error = error
        else:
            with self._lock:
                self.session = session
                if self._abandoned:
                    session.close()
        self.done.set()
