"""A stream of messages over a Unix socket, within one host.

See `framing` for the format. Only `receive` waits: bytes that the socket does not
accept are kept and sent by later calls.
"""

from __future__ import annotations

import collections
import contextlib
import select
import socket
import sys
import time
from collections.abc import Sequence

from tfrl.replay_service import errors
from tfrl.replay_service.transport import framing, wire

if sys.platform == "win32":
    raise ImportError("Python has no Unix sockets on Windows; use gRPC.")

_CHUNK = 1 << 16  # Bytes per read, except within a larger message.
_SMALL = 1 << 12  # Buffers up to this size are joined before sending.
_MAX_BUFFERS = 64  # In one call of sendmsg; every system accepts this number.


class LocalStream:
    """A stream of messages over a Unix socket: the client's end.

    Only one thread may use it at a time.
    """

    def __init__(self, path: str, timeout: float):
        """Connects to a server.

        Args:
          path: The path of the server's socket.
          timeout: The number of seconds to wait for the server to accept.

        Raises:
          OSError: If no server listens on the socket.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(max(timeout, 0.01))
            self._socket.connect(path)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            self._socket.setblocking(False)
        except BaseException:
            self._socket.close()
            raise
        self._reading = select.poll()
        self._reading.register(self._socket, select.POLLIN)
        self._both = select.poll()
        self._both.register(self._socket, select.POLLIN | select.POLLOUT)
        self._outgoing: collections.deque[memoryview] = collections.deque()
        self._reader = framing.MessageReader(_CHUNK)
        self._is_drained = True  # Whether the last read emptied the socket.
        self._last: wire.Buffer | None = None  # Read after sending had failed.

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
          after a message that says why.

        Raises:
          ConnectionLost: If the connection is lost.
        """
        outgoing = self._outgoing
        while outgoing:
            some = [outgoing[i] for i in range(min(len(outgoing), _MAX_BUFFERS))]
            try:
                sent = self._socket.sendmsg(some)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as error:
                outgoing.clear()
                if not self._has_last_message():
                    raise _lost(error) from error
                break
            while sent:
                first = outgoing[0]
                if sent < len(first):
                    outgoing[0] = first[sent:]
                    break
                sent -= len(first)
                outgoing.popleft()
        return True

    def receive(self, timeout: float | None) -> wire.Buffer | None:
        """Returns the next message, or None after `timeout` seconds.

        Args:
          timeout: The number of seconds to wait; None for no limit.

        Raises:
          ConnectionLost: If the connection is lost.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._outgoing:
            self.pump()
        if self._last is not None:
            last, self._last = self._last, None
            return last
        while True:
            message = self._next_message()
            if message is not None:
                return message
            if timeout != 0 and self._is_drained:
                remaining = None
                if deadline is not None:
                    remaining = deadline - time.monotonic()
                if (remaining is not None and remaining <= 0) or not self._wait(
                    remaining
                ):
                    return None
            if not self._read() and timeout == 0:
                return None

    def close(self) -> None:
        """Closes this end of the connection."""
        self._outgoing.clear()
        self._socket.close()

    def _wait(self, timeout: float | None) -> bool:
        """Waits until there are bytes to read or there is room to write."""
        milliseconds = None if timeout is None else timeout * 1000
        waiting = self._reading if self.pump() else self._both
        return bool(waiting.poll(milliseconds))

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
        target = self._reader.space()
        try:
            count = self._socket.recv_into(target)
        except (BlockingIOError, InterruptedError):
            self._is_drained = True
            return False
        except OSError as error:
            raise _lost(error) from error
        self._is_drained = count < len(target)
        if not count:
            raise errors.ConnectionLost("The server closed the connection.")
        self._reader.received(count)
        return True


def _lost(error: OSError) -> errors.ConnectionLost:
    return errors.ConnectionLost(f"The connection to the server broke: {error}.")
