"""A stream of messages over a socket: the client's end.

See `framing` for the format. Only `receive` waits: bytes that the socket does not
accept are kept and sent by later calls.
"""

from __future__ import annotations

import collections
import contextlib
import select
import socket
import sys
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.transport import deadlines, framing, keepalive, tls, wire

_CHUNK = 1 << 16  # Bytes per read, except within a larger message.
_SMALL = 1 << 12  # Buffers up to this size are joined before sending.
_MAX_BUFFERS = 64  # Buffers in one call of sendmsg; every system accepts this number.
_ENCRYPTED_AT_ONCE = 1 << 18  # Bytes.


class ByteChannel(Protocol):
    """The bytes of a non-blocking socket, plain or encrypted.

    Attributes:
      is_drained: Whether the last `receive_into` left nothing to read.
    """

    is_drained: bool

    def send(self, outgoing: collections.deque[memoryview]) -> bool:
        """Sends bytes of `outgoing` and removes them; returns whether all were sent.

        Raises:
          OSError: If the connection is lost.
        """

    def receive_into(self, target: memoryview) -> int | None:
        """Returns the number of received bytes; None if there are none; 0 at the end.

        Raises:
          OSError: If the connection is lost.
        """


class PlainChannel:
    """The plain bytes of a socket; see `ByteChannel`."""

    def __init__(self, connection: socket.socket):
        """Creates a channel.

        Args:
          connection: A connected socket that does not block.
        """
        self.is_drained = True
        self._socket = connection

    def send(self, outgoing: collections.deque[memoryview]) -> bool:
        """See `ByteChannel`."""
        while outgoing:
            some = [outgoing[i] for i in range(min(len(outgoing), _MAX_BUFFERS))]
            try:
                sent = self._send_some(some)
            except (BlockingIOError, InterruptedError):
                return False
            while sent:
                first = outgoing[0]
                if sent < len(first):
                    outgoing[0] = first[sent:]
                    break
                sent -= len(first)
                outgoing.popleft()
        return True

    def receive_into(self, target: memoryview) -> int | None:
        """See `ByteChannel`."""
        try:
            count = self._socket.recv_into(target)
        except (BlockingIOError, InterruptedError):
            self.is_drained = True
            return None
        self.is_drained = count < len(target)
        return count

    def _send_some(self, buffers: list[memoryview]) -> int:
        if hasattr(self._socket, "sendmsg"):
            return self._socket.sendmsg(buffers)
        return self._socket.send(buffers[0])  # Windows.


class TlsChannel:
    """The bytes of a socket, encrypted; see `ByteChannel`."""

    def __init__(self, connection: socket.socket, layer: tls.TlsLayer):
        """Creates a channel.

        Args:
          connection: A connected socket that does not block.
          layer: The client's end, after the handshake.
        """
        self.is_drained = True
        self._socket = connection
        self._layer = layer
        self._encrypted = memoryview(layer.take())  # Bytes that are not sent yet.
        self._received = np.empty(_ENCRYPTED_AT_ONCE, np.uint8).data

    def send(self, outgoing: collections.deque[memoryview]) -> bool:
        """See `ByteChannel`."""
        while self._encrypted or outgoing:
            if not self._encrypted:
                piece = outgoing.popleft()
                if len(piece) > _ENCRYPTED_AT_ONCE:
                    outgoing.appendleft(piece[_ENCRYPTED_AT_ONCE:])
                    piece = piece[:_ENCRYPTED_AT_ONCE]
                self._encrypted = memoryview(self._layer.encrypt(piece))
            try:
                sent = self._socket.send(self._encrypted)
            except (BlockingIOError, InterruptedError):
                return False
            self._encrypted = self._encrypted[sent:]
        return True

    def receive_into(self, target: memoryview) -> int | None:
        """See `ByteChannel`."""
        while True:
            count = self._layer.read_into(target)
            if count is not None:
                self.is_drained = False
                return count
            more = self._layer.take()
            if more:  # An answer to a change of keys.
                self._encrypted = memoryview(bytes(self._encrypted) + more)
            try:
                received = self._socket.recv_into(self._received)
            except (BlockingIOError, InterruptedError):
                self.is_drained = True
                return None
            if not received:
                return 0
            self._layer.feed(self._received[:received])


class SocketStream:
    """A stream of messages over a connected socket.

    Only one thread may use it at a time.
    """

    def __init__(
        self,
        connection: socket.socket,
        channel: ByteChannel | None = None,
        *,
        first: bytes = b"",
        answer: bytes = b"",
    ):
        """Creates a stream, which owns the socket from now on.

        Args:
          connection: A connected socket that does not block.
          channel: The channel of the socket; by default a `PlainChannel`.
          first: Bytes to send before the first message.
          answer: Bytes that the server sends before its first message.
        """
        self._socket = connection
        self._channel = PlainChannel(connection) if channel is None else channel
        self._waiting = _Waiting(connection)
        self._outgoing: collections.deque[memoryview] = collections.deque()
        self._reader = framing.MessageReader(_CHUNK, prefix=answer)
        self._last: wire.Buffer | None = None  # Read after a failed send.
        if first:
            self._outgoing.append(memoryview(first))

    def send(self, buffers: Sequence[wire.Buffer]) -> None:
        """Sends as much of a message as the socket accepts; later calls send the rest.

        Args:
          buffers: The message, in parts, which must not change before they are sent.

        Raises:
          ConnectionLost: If the connection is lost.
          ResourceExhaustedError: If the message is larger than `wire.MAX_FRAME`.
        """
        self._outgoing.extend(map(memoryview, framing.pack(buffers, _SMALL)))
        self.pump()

    def pump(self) -> bool:
        """Sends as many of the waiting bytes as the socket accepts.

        Returns:
          Whether everything has been sent, or the server has closed the connection
          after a message with the reason.

        Raises:
          ConnectionLost: If the connection is lost.
        """
        try:
            return self._channel.send(self._outgoing)
        except OSError as error:
            self._outgoing.clear()
            if not self._has_last_message():
                raise _lost(error) from error
            return True

    def receive(self, timeout: float | None) -> wire.Buffer | None:
        """Returns the next message, or None after `timeout` seconds.

        Args:
          timeout: The number of seconds to wait; None for no limit.

        Raises:
          ConnectionLost: If the connection is lost.
        """
        deadline = deadlines.after(timeout)
        self.pump()
        if self._last is not None:
            last, self._last = self._last, None
            return last
        while True:
            message = self._next_message()
            if message is not None:
                return message
            if timeout != 0 and self._channel.is_drained:
                remaining = deadlines.remaining(deadline)
                if remaining == 0 or not self._wait(remaining):
                    return None
            if not self._read() and timeout == 0:
                return None

    def close(self) -> None:
        """Closes this end of the connection."""
        self._outgoing.clear()
        self._socket.close()

    def _wait(self, timeout: float | None) -> bool:
        """Waits until there are bytes to read or there is room to write.

        Returns:
          Whether there are; False when time is up.

        Raises:
          ConnectionLost: If the host at the other end is gone.
        """
        deadline = deadlines.after(timeout)
        while True:
            left = deadlines.remaining(deadline)
            wait = keepalive.PERIOD if left is None else min(left, keepalive.PERIOD)
            if self._waiting.wait(wait, for_room=not self.pump()):
                return True
            if left is not None and left <= wait:
                return False
            if keepalive.is_dead(self._socket):
                raise errors.ConnectionLost("The server's host does not answer.")

    def _has_last_message(self) -> bool:
        """Returns whether the server sent a message before it closed the connection."""
        if self._last is None:
            with contextlib.suppress(errors.ConnectionLost):
                self._read()
                self._last = self._next_message()
        return self._last is not None

    def _next_message(self) -> wire.Buffer | None:
        try:
            return self._reader.next_message()
        except errors.ProtocolError as error:
            raise errors.ConnectionLost(str(error)) from error

    def _read(self) -> bool:
        """Reads available bytes; returns whether there were any."""
        try:
            count = self._channel.receive_into(self._reader.space())
        except OSError as error:
            raise _lost(error) from error
        if count is None:
            return False
        if not count:
            raise errors.ConnectionLost("The server closed the connection.")
        self._reader.received(count)
        return True


class _Waiting:
    """Waits for a socket; works with any number of open files."""

    def __init__(self, connection: socket.socket):
        self._socket = connection
        if sys.platform != "win32":
            self._reading = select.poll()
            self._reading.register(connection, select.POLLIN)
            self._both = select.poll()
            self._both.register(connection, select.POLLIN | select.POLLOUT)

    def wait(self, timeout: float, for_room: bool) -> bool:
        """Returns whether there are bytes to read or, if wanted, room to write."""
        if sys.platform == "win32":  # `select` has no limit there.
            sockets = [self._socket]
            return any(select.select(sockets, sockets * for_room, [], timeout))
        waiting = self._both if for_room else self._reading
        return bool(waiting.poll(timeout * 1000))


def _lost(error: OSError) -> errors.ConnectionLost:
    return errors.ConnectionLost(f"The connection to the server broke: {error}.")
