"""Sessions, each of which answers one client's messages in order.

A transport passes each message to `Session.receive`, which answers it immediately if it
can. A request that has to wait, for a rate limiter or for a slow client, continues when
`proceed` or `resume` is called. Messages that arrive meanwhile are kept.
"""

from __future__ import annotations

import asyncio
import collections
import reprlib
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving.requests import (
    AGAIN,
    DONE,
    Caller,
    Continuation,
    Handlers,
    Request,
)
from tfrl.replay_service.engine.serving.service import Service
from tfrl.replay_service.transport import framing, wire

_ROLES = ("control", "writer", "sampler")
_HELLO_DEADLINE = 10.0  # Seconds.
_READ_AHEAD = 16 << 20  # Bytes of kept messages at which reading stops.
_ALL_AHEAD = 256 << 20  # The same, for the messages of all sessions.
_MESSAGES_AHEAD = 1024
_TURN = 0.001  # Seconds after which other sessions have their turn.
_LONGEST_WAIT = 10 * 365 * 86400.0  # Seconds; event loops do not accept infinity.


class Sink(Protocol):
    """The transport below a session."""

    def send(self, buffers: list[wire.Buffer]) -> None:
        """Sends a message; calls the session's `pause` if the client is slow."""

    def pause_reading(self) -> None:
        """Requests that the session's `receive` is no longer called."""

    def resume_reading(self) -> None:
        """Resumes calling the session's `receive`."""

    def close(self) -> None:
        """Closes the connection after the messages sent so far."""


class Session:
    """Answers the messages of one client.

    Attributes:
      service: The state that all sessions share.
      shared: Whether the client reads steps from the server's memory.
      waiting_since: The loop's time when the current request began to wait.
      most_bytes: The size of the largest message that the client may send now.
    """

    def __init__(
        self,
        service: Service,
        make_handlers: Callable[[Service, Caller], Handlers],
        sink: Sink,
        is_local: bool,
        peer: str = "this host",
    ):
        """Creates a session that waits for its client's greeting.

        Args:
          service: The state that all sessions share.
          make_handlers: Returns the handlers of this session's messages.
          sink: The transport for answers.
          is_local: Whether the client is on this host and must know the secret.
          peer: The address of the client, for the log.
        """
        self.service = service
        self.shared = False
        self.waiting_since = 0.0
        self.most_bytes = wire.MAX_GREETING_BYTES
        self._handlers = make_handlers(service, self)
        self._sink = sink
        self._is_local = is_local
        self._peer = peer
        self._role = ""
        self._greeted = False
        self._closed = False
        self._paused = False
        self._reading = True
        self._scheduled = False
        self._messages: collections.deque[wire.Buffer] = collections.deque()
        self._kept = 0  # Bytes in the kept messages.
        self._request: Request | None = None  # The current request.
        self._waits = False
        self._queue: collections.deque[Caller] | None = (
            None  # The queue in which the session waits.
        )
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(
            _HELLO_DEADLINE, self._no_hello
        )
        service.sessions.add(self)
        service.newcomers.add(self, is_local)

    def receive(self, message: wire.Buffer, at_once: bool = True) -> None:
        """Receives a message.

        Args:
          message: The bytes of the message, which must not change later.
          at_once: Whether the message may be answered immediately; if not, it is
            answered after other sessions have had their turn.
        """
        if self._closed:
            return
        if len(message) > self.most_bytes:
            self.refuse(framing.too_large(len(message), self.most_bytes))
            return
        is_idle = self._request is None and not self._messages and not self._paused
        if is_idle and at_once:
            self._guarded(self._answer, message)
        elif len(message) > 3 and message[3] == wire.RELEASE:
            # A RELEASE frees memory, so it must not wait for earlier messages.
            self._guarded(self._handle, message)
        else:
            self._keep(message)
            if is_idle:
                self._schedule()

    def proceed(self) -> None:
        """Continues with the request that was waiting."""
        if self._closed:
            return
        self._waits = False
        self._queue = None
        self._cancel_timer()
        self._guarded(self._work, True)

    def pause(self) -> None:
        """Stops sending until `resume`, because the client reads too slowly."""
        self._paused = True

    def resume(self) -> None:
        """Resumes sending, if the session was paused."""
        if self._paused:
            self._paused = False
            if not self._waits:
                self._schedule()

    def send(
        self, kind: int, meta: Mapping[str, Any], arrays: Sequence[np.ndarray] = ()
    ) -> None:
        """Sends a message to the client."""
        if not self._closed:
            self._sink.send(wire.encode(kind, meta, arrays))

    def send_error(self, error: Exception, **more: Any) -> None:
        """Sends an ERROR message to the client."""
        code = errors.code_of(error)
        self.send(wire.ERROR, {"code": code, "message": str(error), **more})

    def close(self) -> None:
        """Ends the session and releases everything that it holds."""
        if self._closed:
            return
        self._closed = True
        self._cancel_timer()
        self.service.sessions.discard(self)
        self.service.newcomers.discard(self)
        if self._greeted:
            self.service.events.disconnected(self._peer, self._role)
        self._leave_queue()
        if self._request is not None:
            self._request.close()
            self._request = None
        self._handlers.close()
        self._messages.clear()
        self.service.kept -= self._kept
        self._kept = 0
        self._sink.close()

    def now(self) -> float:
        """Returns the loop's time, in seconds."""
        return self._loop.time()

    def wait_until(self, delay: float) -> None:
        """Calls the current request's `expire` if it still waits after `delay`."""
        self._cancel_timer()
        self._timer = self._loop.call_later(min(delay, _LONGEST_WAIT), self._expired)

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except errors.ReverbError as error:
            self.refuse(error)
        except Exception as error:
            # A failure in one session must not affect the others.
            traceback.print_exc()
            self.refuse(errors.ReverbError(f"The server failed: {error!r}."))

    def _answer(self, message: wire.Buffer) -> None:
        self._handle(message)
        if self._request is not None:
            self._work(False)

    def refuse(self, error: Exception) -> None:
        """Ends the session with an ERROR message."""
        self.service.events.refused(self._peer, error)
        self.send_error(error)
        self.close()

    def _handle(self, message: wire.Buffer) -> None:
        frame = wire.decode(message, is_request=True)
        is_hello = frame.kind == wire.HELLO
        if not (is_hello or self._handlers.handles(frame.kind)):
            raise errors.ProtocolError(
                f"Got a message of the unknown kind {frame.kind}."
            )
        if self._greeted == is_hello:
            raise errors.ProtocolError(
                "A client has to send one greeting, as its first message."
            )
        request = None
        try:
            if is_hello:
                self._hello(frame)
            else:
                request = self._handlers.handle(frame)
        except errors.ReverbError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise errors.ProtocolError(
                f"Got a malformed message of kind {frame.kind}: {error!r}."
            ) from error
        if request is not None:
            self._request = request

    def _work(self, woken: bool) -> None:
        """Processes requests until one has to wait or this session's turn is over."""
        end = self._loop.time() + _TURN
        while not (self._paused or self._closed):
            if self._request is not None:
                outcome = self._request.advance(woken)
                woken = False
                if outcome is DONE:
                    self._request = None
                elif outcome is not AGAIN:
                    self._wait(None if isinstance(outcome, Continuation) else outcome)
                    return
            elif self._messages:
                self._handle(self._take_kept())
            else:
                return
            if self._loop.time() > end:
                self._schedule()
                return

    def _wait(self, queue: collections.deque[Caller] | None) -> None:
        """Waits until `proceed` is called, in `queue` if it is not None."""
        self._waits = True
        self._queue = queue
        if queue is not None:
            self.waiting_since = self._loop.time()
            queue.append(self)

    def _schedule(self) -> None:
        if not self._scheduled and (self._request is not None or self._messages):
            self._scheduled = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._scheduled = False
        if not self._waits and not self._closed:
            self._guarded(self._work, False)

    def _keep(self, message: wire.Buffer) -> None:
        self._messages.append(message)
        self._kept += len(message)
        self.service.kept += len(message)
        too_much = (
            self._kept > _READ_AHEAD
            or len(self._messages) > _MESSAGES_AHEAD
            or self.service.kept > _ALL_AHEAD
        )
        if self._reading and too_much:
            self._reading = False
            self._sink.pause_reading()

    def _take_kept(self) -> wire.Buffer:
        message = self._messages.popleft()
        self._kept -= len(message)
        self.service.kept -= len(message)
        few = self._kept <= _READ_AHEAD // 2 and len(self._messages) < _MESSAGES_AHEAD
        if few and not self._reading:
            self._reading = True
            self._sink.resume_reading()
        return message

    def _expired(self) -> None:
        self._timer = None
        if self._waits and not self._closed:
            assert self._request is not None, "Only requests wait."
            self._leave_queue()
            self._request.expire()
            self._request = None
            self._schedule()

    def _leave_queue(self) -> None:
        self._waits = False
        if self._queue is not None:
            self._queue.remove(self)
            self._queue = None

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _no_hello(self) -> None:
        self._timer = None
        self.refuse(
            errors.ProtocolError(f"Got no greeting within {_HELLO_DEADLINE} s.")
        )

    def _hello(self, frame: wire.Frame) -> None:
        hello = frame.meta
        self._cancel_timer()
        if hello.get("protocol") != wire.PROTOCOL or hello.get("role") not in _ROLES:
            raise errors.ProtocolError(
                f"Greeted in protocol {reprlib.repr(hello.get('protocol'))} as "
                f"{reprlib.repr(hello.get('role'))}, expected {wire.PROTOCOL} and one "
                f"of {_ROLES}."
            )
        if self._is_local and not self.service.admits_locally(hello.get("secret")):
            raise errors.AuthenticationError("The secret belongs to another server.")
        self._greeted = True
        self._role = hello["role"]
        self.service.events.connected(self._peer, self._role, self._is_local)
        self.most_bytes = wire.MAX_FRAME
        self.service.newcomers.discard(self)
        self.shared = self._is_local and bool(hello.get("shared"))
        welcome = self.service.welcome(self._is_local)
        welcome.update(self._handlers.greet(hello))
        self.send(wire.WELCOME, welcome)
