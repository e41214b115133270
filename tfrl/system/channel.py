"""`Channel`: messages between two processes, over a socket."""

from __future__ import annotations

import socket
import struct
import sys

_HEADER = struct.Struct("<BQ")
_JOINED = 1 << 14  # Bytes; copying more takes longer than another system call.

# Kinds of messages that any child sends; its target uses other numbers.
READY = 0
RAISED = 1


class ChannelClosedError(ConnectionError):
    """The other end of a channel is closed."""


class Channel:
    """One end of a connection. A message is a kind, from 0 to 255, and bytes."""

    def __init__(self, end: socket.socket):
        """Creates a channel.

        Args:
          end: A connected, blocking stream socket, which the channel owns from now on.
        """
        self._socket = end

    def fileno(self) -> int:
        """Returns the file descriptor to wait on; -1 when closed."""
        return self._socket.fileno()

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Sends one message.

        Raises:
          ChannelClosedError: If the other end is closed.
        """
        header = _HEADER.pack(kind, len(payload))
        try:
            if len(payload) < _JOINED:
                self._socket.sendall(header + payload)
            else:
                self._socket.sendall(header)
                self._socket.sendall(payload)
        except (BrokenPipeError, ConnectionResetError):
            raise ChannelClosedError from None

    def receive(self) -> tuple[int, bytes]:
        """Waits for one message and returns its kind and its payload.

        Raises:
          ChannelClosedError: If the other end is closed.
        """
        try:
            kind, size = _HEADER.unpack(self._read(_HEADER.size))
            return kind, self._read(size) if size else b""
        except ConnectionResetError:
            raise ChannelClosedError from None

    def send_file(self, fd: int) -> None:
        """Sends an open file, which the other end receives with `receive_file`."""
        if sys.platform == "win32":
            raise OSError("Windows cannot pass an open file to another process.")
        socket.send_fds(self._socket, [b"f"], [fd])

    def receive_file(self) -> int:
        """Receives an open file; returns a descriptor that this process owns."""
        if sys.platform == "win32":
            raise OSError("Windows cannot pass an open file to another process.")
        _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        if not descriptors:
            raise ChannelClosedError
        return descriptors[0]

    def close(self) -> None:
        """Closes this end. The other end then reads the end of file."""
        self._socket.close()

    def _read(self, size: int) -> bytes:
        data = self._socket.recv(size)
        if len(data) == size:
            return data
        whole = bytearray(size)
        view = memoryview(whole)
        have = len(data)
        view[:have] = data
        count = have
        while count and have < size:
            count = self._socket.recv_into(view[have:])
            have += count
        if not count:
            raise ChannelClosedError
        return bytes(whole)
