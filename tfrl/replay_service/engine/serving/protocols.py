"""The server's end of connections, over a Unix socket or over TCP.

`LocalProtocol` serves clients of the same host. `network_listener` admits clients of
any host, whom `RemoteProtocol` then serves.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from typing_extensions import override

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving import control_requests
from tfrl.replay_service.engine.serving.requests import Caller, Request
from tfrl.replay_service.engine.serving.sample_requests import Sampler
from tfrl.replay_service.engine.serving.service import Service
from tfrl.replay_service.engine.serving.sessions import Session
from tfrl.replay_service.engine.serving.write_requests import WriterState
from tfrl.replay_service.engine.storage import memory
from tfrl.replay_service.transport import framing, keepalive, tls, wire

_CONTROL: Mapping[int, Callable[[Service, Caller, wire.Frame], Request | None]] = {
    wire.INFO: control_requests.info,
    wire.RESET: control_requests.reset,
    wire.MUTATE: control_requests.mutate,
    wire.CHECKPOINT: control_requests.checkpoint,
}

_PIECE = 1 << 18  # Bytes that are read, or about as many that are sent, in one turn.
_AT_ONCE = 8  # Messages of one read that may be answered immediately.
_JOINED = 1 << 16  # Buffers up to this size are joined before sending.
_SOCKET_BUFFER = 1 << 20
_LINGER = 5.0  # Seconds for a client to receive the last messages.
_PAUSE = 0.01  # Seconds between checks whether the messages have left the server.
_HIGH_WATER = 8 << 20  # Unsent bytes at which a session pauses.
_MOST_IN_TRANSPORT = 1 << 20  # Some versions of asyncio copy these bytes.
_ALL_UNSENT = 256 << 20  # Unsent bytes of all calls above which memory is checked.
_SMALL = 1 << 16  # Bytes of a message that is always sent, such as an error.


class _Incoming:
    """The reservation of memory for one connection's message in transit."""

    def __init__(self, service: Service):
        self._all = service.incoming
        self._size = 0

    def set(self, size: int) -> None:
        """Reserves memory for a message of `size` bytes instead of the one before.

        Raises:
          ResourceExhaustedError: If there is not enough memory.
        """
        if size != self._size:
            self._all.add(-self._size)
            self._size = 0
            self._all.add(size)
            self._size = size


class StreamProtocol(asyncio.BufferedProtocol):
    """A client's connection: passes messages to its session, and sends the answers."""

    def __init__(self, service: Service, peer: str, is_local: bool):
        """Creates the protocol of a connection that is not yet open.

        Args:
          service: The state that all sessions share.
          peer: The address of the client, for the log.
          is_local: Whether the client is on this host and must know the secret.
        """
        self._service = service
        self._peer = peer
        self._is_local = is_local
        self._reader = framing.MessageReader(_PIECE, service.memory.allocate)
        self._incoming = _Incoming(service)
        self._transport: Any = None
        self._session: Any = None
        self._outgoing: collections.deque[memoryview] = collections.deque()
        self._waiting_bytes = 0
        self._unsent = 0  # This connection's part of `Service.unsent`.
        self._transport_is_full = False
        self._sends_next_turn = False
        self._closes = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts a session."""
        self._transport = transport
        self._transport.set_write_buffer_limits(high=_MOST_IN_TRANSPORT)
        self._session = Session(
            self._service, SessionHandlers, self, self._is_local, self._peer
        )

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the session."""
        self._outgoing.clear()
        self._waiting_bytes = 0
        self._session.close()
        self._count(0)
        self._incoming.set(0)
        self._reader.close()

    def pause_writing(self) -> None:
        """Pauses the session: the client reads too slowly."""
        self._transport_is_full = True
        self._session.pause()

    def resume_writing(self) -> None:
        """Sends more; resumes the session if the client has caught up."""
        self._transport_is_full = False
        self._send_more()

    @override
    def get_buffer(self, sizehint: int) -> Any:
        """Returns the buffer to read into."""
        return self._reader.space()[:_PIECE]

    def buffer_updated(self, nbytes: int) -> None:
        """Passes complete messages to the session."""
        self._received(nbytes)

    def send(self, buffers: list[wire.Buffer]) -> None:
        """Sends a message without copying its large arrays.

        Raises:
          ResourceExhaustedError: If many clients do not read the answers that they have
            requested, and there is not enough memory for more.
        """
        if self._transport.is_closing():
            return  # The client is gone: `connection_lost` will follow.
        packed = framing.pack(buffers, _JOINED)
        length = sum(map(len, packed))
        if self._service.unsent > _ALL_UNSENT and length > _SMALL:
            memory.check(length)
        if len(packed) == 1 and not self._outgoing:
            self._write(packed[0])
        else:
            self._outgoing.extend(map(memoryview, packed))
            self._waiting_bytes += length
            self._send_more()
        self._count(self._waiting_bytes + self._transport.get_write_buffer_size())

    def pause_reading(self) -> None:
        """Stops reading soon."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resumes reading."""
        self._transport.resume_reading()

    def close(self) -> None:
        """Closes the connection when everything is sent, or after a time limit."""
        self._closes = True
        self._send_more()
        loop = asyncio.get_running_loop()
        loop.call_later(_LINGER, self._transport.abort)

    def _write(self, data: wire.Buffer) -> None:
        """Passes bytes to the transport."""
        self._transport.write(data)

    def _end(self) -> None:
        """Closes the connection, on which everything has been sent."""
        self._transport.close()

    def _received(self, count: int, at_once: int = _AT_ONCE) -> int:
        """Passes the messages that are complete with `count` more bytes to the session.

        Args:
          count: The number of bytes.
          at_once: The number of messages that may be answered immediately.

        Returns:
          The number of further messages that may be answered immediately.
        """
        self._reader.received(count)
        while (message := self._next_message()) is not None:
            self._session.receive(message, at_once=at_once > 0)
            at_once -= 1
        try:
            self._incoming.set(self._reader.expected)
        except errors.ResourceExhaustedError as error:
            self._session.refuse(error)
        return at_once

    def _send_more(self) -> None:
        """Passes about `_PIECE` bytes to the transport, and the rest in later turns.

        A client that reads as fast as the server sends never fills the transport, so
        without this limit a large message would be sent in one turn.
        """
        if self._sends_next_turn:
            return
        most = _PIECE
        while self._outgoing and not self._transport_is_full and most > 0:
            first = self._outgoing.popleft()
            if len(first) > _PIECE:
                self._outgoing.appendleft(first[_PIECE:])
            piece = first[:_PIECE]
            self._waiting_bytes -= len(piece)
            most -= len(piece)
            self._write(piece)
        self._count(self._waiting_bytes + self._transport.get_write_buffer_size())
        if self._waiting_bytes > _HIGH_WATER:
            self._session.pause()
        elif not self._transport_is_full:
            self._session.resume()
        if self._outgoing and not self._transport_is_full:
            self._sends_next_turn = True
            asyncio.get_running_loop().call_soon(self._send_in_next_turn)
        elif self._closes and not self._outgoing:
            self._end()

    def _send_in_next_turn(self) -> None:
        self._sends_next_turn = False
        self._send_more()

    def _count(self, unsent: int) -> None:
        self._service.unsent += unsent - self._unsent
        self._unsent = unsent

    def _next_message(self) -> wire.Buffer | None:
        """Returns the next complete message; ends the session if it is too large."""
        try:
            return self._reader.next_message(self._session.most_bytes)
        except errors.ReverbError as error:
            self._session.refuse(error)
            return None


class LocalProtocol(StreamProtocol):
    """A client's connection on the Unix socket."""

    def __init__(self, service: Service):
        """Creates the protocol of a connection that is not yet open.

        Args:
          service: The state that all sessions share.
        """
        super().__init__(service, "this host", is_local=True)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts a session."""
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER)
        super().connection_made(transport)

    def close(self) -> None:
        """Closes the connection when everything is sent, or after a time limit."""
        self._transport.pause_reading()
        super().close()


class RemoteProtocol(StreamProtocol):
    """The connection of a client that `network_listener` has admitted."""

    def __init__(
        self,
        service: Service,
        peer: str,
        layer: tls.TlsLayer | None,
        scratch: memoryview,
        lost: Callable[[RemoteProtocol], None],
    ):
        """Creates the protocol of a connection that is not yet open.

        Args:
          service: The state that all sessions share.
          peer: The address of the client, for the log.
          layer: The server's end of TLS, after the handshake; None without encryption.
          scratch: Memory for received bytes, which all connections of a loop can share.
          lost: Called with this protocol when its connection has ended.
        """
        super().__init__(service, peer, is_local=False)
        self._layer = layer
        self._scratch = scratch
        self._lost = lost
        self._watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts a session."""
        super().connection_made(transport)
        self._write(framing.MAGIC)
        self._look()
        if self._layer is not None:  # There may be more than the preamble.
            asyncio.get_running_loop().call_soon(self._decrypt)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the session."""
        super().connection_lost(exc)
        if self._watch is not None:
            self._watch.cancel()
        self._lost(self)

    def get_buffer(self, sizehint: int) -> Any:
        """Returns the buffer to read into."""
        if self._layer is None and not self._closes:
            return super().get_buffer(sizehint)
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        """Passes complete messages to the session."""
        if self._closes:
            return
        if self._layer is None:
            self._received(nbytes)
        else:
            self._layer.feed(self._scratch[:nbytes])
            self._decrypt()

    @property
    def is_sending(self) -> bool:
        """Whether messages have not left the server yet."""
        return bool(self._outgoing or self._transport.get_write_buffer_size())

    def abort(self) -> None:
        """Ends the connection now."""
        self._outgoing.clear()
        self._waiting_bytes = 0
        self._transport.abort()

    def close(self) -> None:
        """Closes the connection when everything is sent, or after a time limit."""
        # With unread bytes, the system would drop what the client has not received.
        self._transport.resume_reading()
        super().close()

    def _end(self) -> None:
        """Lets the client end the connection, after it has read everything."""
        if self._transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(_PAUSE, self._end)
            return
        try:
            self._transport.write_eof()
        except OSError:  # The client is gone, and `connection_lost` will follow.
            self.abort()

    def _write(self, data: wire.Buffer) -> None:
        super()._write(data if self._layer is None else self._layer.encrypt(data))

    def _decrypt(self) -> None:
        assert self._layer is not None
        at_once = _AT_ONCE
        try:
            while not self._closes:
                count = self._layer.read_into(self._reader.space())
                if count is None:
                    break
                if not count:
                    self.abort()
                    break
                at_once = self._received(count, at_once)
        except ssl.SSLError as error:
            self._service.events.refused(self._peer, error)
            self.abort()
        answer = self._layer.take()
        if answer and self._transport_is_full:
            self.abort()  # The client asks for keys and does not read.
        elif answer:
            self._transport.write(answer)

    def _look(self) -> None:
        """Ends the connection if the client's host is gone."""
        if keepalive.is_dead(self._transport.get_extra_info("socket")):
            self.abort()
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(keepalive.PERIOD, self._look)


class SessionHandlers:
    """Handles one session's messages, except for its greeting."""

    def __init__(self, service: Service, caller: Caller):
        """Creates the handlers of a session that has not received a greeting.

        Args:
          service: The state that all sessions share.
          caller: The session.
        """
        self._service = service
        self._caller = caller
        self._sampler: Sampler | None = None
        self._writer: WriterState | None = None
        self._handlers: Mapping[int, Callable[[wire.Frame], Request | None]] = {
            **{
                kind: functools.partial(handler, service, caller)
                for kind, handler in _CONTROL.items()
            },
            wire.SAMPLE: self._sample,
            wire.RELEASE: self._release,
            wire.WRITE: self._write,
        }

    def greet(self, hello: Mapping[str, Any]) -> dict[str, Any]:
        """Prepares for the client's role; returns extra fields for the welcome message.

        Args:
          hello: The JSON object of the client's greeting, which names its role.

        Raises:
          ProtocolError: If the writer's id is invalid.
        """
        if hello["role"] != "writer":
            return {}
        writer_id = hello.get("writer_id")
        self._writer = WriterState(self._service, self._caller, writer_id)
        return {"confirmed": self._writer.record.confirmed}

    def handles(self, kind: int) -> bool:
        """Returns whether there is a handler for messages of this kind."""
        return kind in self._handlers

    def handle(self, frame: wire.Frame) -> Request | None:
        """Handles a message; returns a request for unfinished work, or None.

        Raises:
          ProtocolError: If the message is malformed or not allowed for this client.
        """
        return self._handlers[frame.kind](frame)

    def close(self) -> None:
        """Releases the steps that are held for the client."""
        if self._sampler is not None:
            self._sampler.close()
        if self._writer is not None:
            self._writer.close()

    def _sample(self, frame: wire.Frame) -> Request | None:
        return self._sampling().request(frame.meta)

    def _release(self, frame: wire.Frame) -> None:
        self._sampling().release(frame.meta["release"])

    def _write(self, frame: wire.Frame) -> Request | None:
        if self._writer is None:
            raise errors.ProtocolError("Only sessions of role 'writer' can write.")
        return self._writer.request(frame)

    def _sampling(self) -> Sampler:
        if self._sampler is None:
            self._sampler = Sampler(self._service, self._caller)
        return self._sampler
