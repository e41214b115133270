"""Streams of messages over TCP, to any host, with or without TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time

from tfrl.replay_service import errors
from tfrl.replay_service.transport import (
    addresses,
    framing,
    keepalive,
    socket_stream,
    tls,
)

_LEAST_WAIT = 0.01  # Seconds.
_MOST_HANDSHAKE = 1 << 16  # Bytes read at once.


def connect(
    address: str, roots: bytes | None, token: str | None, timeout: float
) -> socket_stream.SocketStream:
    """Connects to a server.

    Args:
      address: "host:port".
      roots: Root certificates (PEM) that verify the server's certificate; empty for the
        system's root certificates; None for an unencrypted connection.
      token: The server's token, if it has one.
      timeout: The number of seconds for the connection and the handshake. The system
        may take longer to look up the host's name.

    Raises:
      ConnectionLost: If no server answers in time, or the TLS of the two sides does not
        agree.
      ValueError: If `roots` holds no valid certificates.
    """
    context = None if roots is None else tls.client_context(roots)
    deadline = time.monotonic() + timeout
    host, port = addresses.split(address)
    connection = _connected(host, port, deadline)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keepalive.enable(connection)
        connection.setblocking(False)
        channel: socket_stream.ByteChannel = socket_stream.PlainChannel(connection)
        if context is not None:
            layer = tls.TlsLayer(context, host)
            _shake_hands(connection, layer, deadline)
            channel = socket_stream.TlsChannel(connection, layer)
        return socket_stream.SocketStream(
            connection,
            channel,
            first=framing.preamble_of_client(token),
            answer=framing.MAGIC,
        )
    except BaseException:
        connection.close()
        raise


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    """Returns a socket that is connected to the first address that answers."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise errors.ConnectionLost(
            f"The host {host!r} cannot be found: {error.strerror}."
        ) from error
    if host == "localhost":  # The default interface on which servers listen.
        found.sort(key=lambda one: one[0] != socket.AF_INET)
    reasons = []
    for family, kind, protocol, _, address in found:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(max(deadline - time.monotonic(), _LEAST_WAIT))
            connection.connect(address)
            return connection
        except OSError as error:
            connection.close()
            reasons.append(f"{address[0]}: {error.strerror or error}")
        except BaseException:
            connection.close()
            raise
    raise errors.ConnectionLost(f"No connection ({'; '.join(reasons)}).")


def _shake_hands(
    connection: socket.socket, layer: tls.TlsLayer, deadline: float
) -> None:
    try:
        while True:
            is_complete = layer.handshake()
            connection.settimeout(max(deadline - time.monotonic(), _LEAST_WAIT))
            connection.sendall(layer.take())
            if is_complete:
                break
            received = connection.recv(_MOST_HANDSHAKE)
            if not received:
                raise errors.ConnectionLost(
                    "The server closed the connection during the TLS handshake."
                )
            layer.feed(received)
        connection.setblocking(False)
    except TimeoutError as error:
        raise errors.ConnectionLost(
            "The server did not complete the TLS handshake in time."
        ) from error
    except OSError as error:
        with contextlib.suppress(OSError):
            connection.sendall(layer.take())  # Tells the server why.
        raise errors.ConnectionLost(_reason(error)) from error


def _reason(error: OSError) -> str:
    """Returns the reason why a handshake failed, and a remedy."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            "tls_root_certificates: they do not verify the server's certificate "
            f"({error.verify_message.rstrip('.')}). Give the root certificates of the "
            "server's certificate chain, and an address with a name that the "
            "certificate has."
        )
    if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return (
            "The server does not use TLS: leave out tls_root_certificates, or give the "
            "server a certificate, Server(tls=(chain, key))."
        )
    return f"The TLS handshake failed: {error}."
