"""A stream of messages over a Unix socket, within one host.

See `framing` for the bytes. Only `receive` waits: what the socket does not take is kept
and sent by later calls.
"""

from __future__ import annotations

import collections
import select
import socket
import time
from collections.abc import Sequence

from tfrl.replay_service import errors
from tfrl.replay_service.transport import framing, wire

_CHUNK = 1 << 16  # Bytes read at once while a message's length is not known.
_SMALL = 1 << 12  # Buffers up to this many bytes are joined rather than listed.
_MAX_BUFFERS = 64  # In one call of sendmsg; every system takes that many.


class LocalStream:
    """One end of a Unix socket, as a stream of messages.

    Used by one thread at a time.
    """

    def __init__(self, path: str, timeout: float):
        """Connects.

        Args:
          path: Of the server's socket.
          timeout: Seconds to wait for the server to accept.

        Raises:
          OSError: If nothing listens there.
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
        self._is_drained = True  # As far as is known: then waiting is what helps.

    def send(self, buffers: Sequence[wire.Buffer]) -> None:
        """Sends a message now as far as the socket takes it, and the rest later.

        Args:
          buffers: Which together are the message. They must not change before they
            have been sent.

        Raises:
          ConnectionLost: If the other side is gone.
          ResourceExhaustedError: If the message is larger than any may be.
        """
        self._outgoing.extend(map(memoryview, framing.pack(buffers, _SMALL)))
        self.pump()

    def pump(self) -> bool:
        """Sends what waits to be sent, as far as the socket takes it.

        Returns:
          Whether all has been sent.

        Raises:
          ConnectionLost: If the other side is gone.
        """
        outgoing = self._outgoing
        while outgoing:
            some = [outgoing[i] for i in range(min(len(outgoing), _MAX_BUFFERS))]
            try:
                sent = self._socket.sendmsg(some)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as error:
                raise _lost(error) from error
            while sent:
                first = outgoing[0]
                if sent < len(first):
                    outgoing[0] = first[sent:]
                    break
                sent -= len(first)
                outgoing.popleft()
        return True

    def receive(self, timeout: float | None) -> wire.Buffer | None:
        """Returns the next message, or None when `timeout` seconds are over.

        Raises:
          ConnectionLost: If the other side is gone.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._outgoing:
            self.pump()
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
        """Closes this process's end."""
        self._outgoing.clear()
        self._socket.close()

    def _wait(self, timeout: float | None) -> bool:
        """Waits until there is something to read or room to write."""
        milliseconds = None if timeout is None else timeout * 1000
        waiting = self._reading if self.pump() else self._both
        return bool(waiting.poll(milliseconds))

    def _next_message(self) -> wire.Buffer | None:
        try:
            return self._reader.next_message()
        except errors.ProtocolError as error:
            raise errors.ConnectionLost(str(error)) from error

    def _read(self) -> bool:
        """Reads what is there; returns whether there was anything."""
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
