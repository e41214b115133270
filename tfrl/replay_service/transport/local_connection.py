"""Streams of messages over a Unix socket, within one host."""

from __future__ import annotations

import socket
import sys

from tfrl.replay_service.transport import socket_stream

if sys.platform == "win32":
    raise ImportError("Python has no Unix sockets on Windows; use TCP.")

_BUFFER = 1 << 20  # Bytes that the system keeps in each direction.


def connect(path: str, timeout: float) -> socket_stream.SocketStream:
    """Connects to a server.

    Args:
      path: The path of the server's socket.
      timeout: The number of seconds to wait for the server to accept.

    Raises:
      OSError: If no server listens on the socket.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(max(timeout, 0.01))
        connection.connect(path)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        connection.setblocking(False)
        return socket_stream.SocketStream(connection)
    except BaseException:
        connection.close()
        raise
