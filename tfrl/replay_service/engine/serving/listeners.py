"""The two transports of the server: gRPC, and a Unix socket on the same host."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import socket
from typing import Any

import grpc

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving import descriptors
from tfrl.replay_service.engine.serving.handlers import SessionHandlers
from tfrl.replay_service.engine.serving.service import Service
from tfrl.replay_service.engine.serving.sessions import Session
from tfrl.replay_service.engine.storage import memory
from tfrl.replay_service.transport import addresses, framing, limits, wire

_PIECE = 1 << 18  # Bytes that are read, or about as many that are sent, in one turn.
_AT_ONCE = 8  # Messages of one read that may be answered immediately.
_JOINED = 1 << 16  # Buffers up to this size are joined before sending.
_SOCKET_BUFFER = 1 << 20
_LINGER = 5.0  # Seconds for a client to receive the last messages.
_HIGH_WATER = 8 << 20  # Unsent bytes at which a session pauses.
_MOST_IN_TRANSPORT = 1 << 20  # Some versions of asyncio copy these bytes.
_ALL_UNSENT = 256 << 20  # Unsent bytes of all calls above which memory is checked.
_SMALL = 1 << 16  # Bytes of a message that is always sent, such as an error.

_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_send_message_length", limits.PART_BYTES),
    ("grpc.max_receive_message_length", limits.PART_BYTES),
    ("grpc.max_concurrent_streams", 100),  # Of one connection; each client uses one.
    # Connections that are silent, or have no call, do not stay open.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 60_000),
    # The server detects clients that have vanished, and clients may send pings.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
)


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


class LocalProtocol(asyncio.BufferedProtocol):
    """A client's connection on the Unix socket."""

    def __init__(self, service: Service):
        """Creates the protocol of a connection that is not yet open.

        Args:
          service: The state that all sessions share.
        """
        self._service = service
        self._reader = framing.MessageReader(_PIECE, service.memory.allocate)
        self._incoming = _Incoming(service)
        self._transport: Any = None
        self._session: Any = None
        self._outgoing: collections.deque[memoryview] = collections.deque()
        self._waiting_bytes = 0
        self._transport_is_full = False
        self._sends_next_turn = False
        self._closes = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts a session."""
        self._transport = transport
        self._transport.set_write_buffer_limits(high=_MOST_IN_TRANSPORT)
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER)
        self._session = Session(self._service, SessionHandlers, self, is_local=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the session."""
        self._outgoing.clear()
        self._session.close()
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

    def get_buffer(self, sizehint: int) -> Any:
        """Returns the buffer to read into."""
        return self._reader.space()[:_PIECE]

    def buffer_updated(self, nbytes: int) -> None:
        """Passes complete messages to the session."""
        self._reader.received(nbytes)
        count = 0
        while (message := self._next_message()) is not None:
            self._session.receive(message, at_once=count < _AT_ONCE)
            count += 1
        try:
            self._incoming.set(self._reader.expected)
        except errors.ResourceExhaustedError as error:
            self._session.refuse(error)

    def send(self, buffers: list[wire.Buffer]) -> None:
        """Sends a message without copying its large arrays."""
        if self._transport.is_closing():
            return  # The client is gone: `connection_lost` will follow.
        packed = framing.pack(buffers, _JOINED)
        if len(packed) == 1 and not self._outgoing:
            self._transport.write(packed[0])
            return
        self._outgoing.extend(map(memoryview, packed))
        self._waiting_bytes += sum(map(len, packed))
        self._send_more()

    def pause_reading(self) -> None:
        """Stops reading soon."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resumes reading."""
        self._transport.resume_reading()

    def close(self) -> None:
        """Closes the connection when everything is sent, or after a time limit."""
        self._closes = True
        self._transport.pause_reading()
        self._send_more()
        loop = asyncio.get_running_loop()
        loop.call_later(_LINGER, self._transport.abort)

    def _send_more(self) -> None:
        """Passes about `_PIECE` bytes to the transport, and the others in later turns.

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
            self._transport.write(piece)
        if self._waiting_bytes > _HIGH_WATER:
            self._session.pause()
        elif not self._transport_is_full:
            self._session.resume()
        if self._outgoing and not self._transport_is_full:
            self._sends_next_turn = True
            asyncio.get_running_loop().call_soon(self._send_in_next_turn)
        elif self._closes and not self._outgoing:
            self._transport.close()

    def _send_in_next_turn(self) -> None:
        self._sends_next_turn = False
        self._send_more()

    def _next_message(self) -> wire.Buffer | None:
        """Returns the next complete message; ends the session if it is too large."""
        try:
            return self._reader.next_message(self._session.most_bytes)
        except errors.ReverbError as error:
            self._session.refuse(error)
            return None


class GrpcSink:
    """Connects a client's gRPC call to a session."""

    def __init__(self, service: Service, context: Any):
        """Starts a session. The caller must then await `run`.

        Args:
          service: The state that all sessions share.
          context: The gRPC context of the call.
        """
        self._service = service
        self._context = context
        self._outgoing: collections.deque[list[wire.Buffer]] = collections.deque()
        self._waiting_bytes = 0
        self._something = asyncio.Event()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._paused = False
        self._closed = False
        self._parts = framing.PartReader(service.memory.allocate)
        self._incoming = _Incoming(service)
        self._session = Session(
            service, SessionHandlers, self, is_local=False, peer=context.peer()
        )

    async def run(self) -> None:
        """Reads and writes until either side ends the call."""
        reading = asyncio.create_task(self._read())
        try:
            await self._write()
        finally:
            self._session.close()
            self._count(-self._waiting_bytes)
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await reading

    def send(self, buffers: list[wire.Buffer]) -> None:
        """Sends a message."""
        length = sum(map(len, buffers))
        if self._service.unsent > _ALL_UNSENT and length > _SMALL:
            memory.check(length)  # Many clients do not read what they have requested.
        for part in framing.split(buffers):
            self._outgoing.append(part)
            self._count(sum(map(len, part)))
        self._something.set()
        if self._waiting_bytes > _HIGH_WATER and not self._paused:
            self._paused = True
            self._session.pause()

    def pause_reading(self) -> None:
        """Stops reading after the next message."""
        self._may_read.clear()

    def resume_reading(self) -> None:
        """Resumes reading."""
        self._may_read.set()

    def close(self) -> None:
        """Ends the call when everything has been sent."""
        self._closed = True
        self._something.set()

    def _count(self, size: int) -> None:
        self._waiting_bytes += size
        self._service.unsent += size

    async def _read(self) -> None:
        try:
            while not self._closed:
                await self._may_read.wait()
                received = await self._context.read()
                if received is grpc.aio.EOF:
                    break
                self._receive(received)
        finally:
            self._session.close()
            self._incoming.set(0)

    def _receive(self, received: bytes) -> None:
        """Passes a message to the session if it is complete."""
        try:
            message = self._parts.add(received, self._session.most_bytes)
            self._incoming.set(self._parts.expected)
        except errors.ReverbError as error:
            self._session.refuse(error)
        else:
            if message is not None:
                self._session.receive(message)

    async def _write(self) -> None:
        while True:
            while self._outgoing:
                message = b"".join(self._outgoing.popleft())
                await self._context.write(message)
                self._count(-len(message))
                if self._paused and self._waiting_bytes <= _HIGH_WATER // 4:
                    self._paused = False
                    self._session.resume()
            if self._closed:
                return
            self._something.clear()
            await self._something.wait()


async def listen_to_grpc(
    service: Service, host: str, port: int, tls: tuple[bytes, bytes] | None
) -> tuple[Any, int]:
    """Starts a gRPC server.

    Args:
      service: The state that all sessions share.
      host: The name or address of the interface.
      port: The port; 0 for any free port.
      tls: The certificate chain and the private key, in PEM form; None for unencrypted
        connections.

    Returns:
      The server and its port.

    Raises:
      RuntimeError: If the port is not available.
    """

    async def session(_: Any, context: Any) -> None:
        # The token is checked first, so that a stranger's messages use no memory.
        if not service.admits(dict(context.invocation_metadata()).get(wire.TOKEN)):
            service.events.refused(context.peer(), "It has no token or another one.")
            await context.abort(
                grpc.StatusCode.UNAUTHENTICATED,
                "The server expects another token: pass token=... or set "
                "TFRL_REPLAY_TOKEN.",
            )
        await GrpcSink(service, context).run()

    # The other half is for the clients on this host, and for files.
    most = ("grpc.max_allowed_incoming_connections", descriptors.raise_limit() // 2)
    server = grpc.aio.server(options=(*_OPTIONS, most))
    handler = grpc.stream_stream_rpc_method_handler(session)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("tfrl.Replay", {"Session": handler}),)
    )
    address = addresses.join(host, port)
    if tls is None:
        port = server.add_insecure_port(address)
    else:
        chain, key = tls
        credentials = grpc.ssl_server_credentials([(key, chain)])
        port = server.add_secure_port(address, credentials)
    await server.start()
    return server, port
