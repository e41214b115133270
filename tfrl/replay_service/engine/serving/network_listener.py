"""Listens on a TCP port, and admits clients that know the token.

Until its token has been checked, a connection can make the server read 36 bytes, or a
TLS handshake and 36 bytes. It has ten seconds. If there are too many such connections,
the oldest one is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
import sys
from collections.abc import Sequence
from concurrent import futures

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving.protocols import RemoteProtocol
from tfrl.replay_service.engine.serving.service import Service
from tfrl.replay_service.transport import addresses, framing, keepalive, tls, wire

_PATIENCE = 10.0  # Seconds for a client's preamble, and its handshake before it.
_FAREWELL = 2.0  # Seconds for a refused client to read the reason.
_MOST_STRANGERS = 256
_QUEUE = 1024
_SCRATCH = 1 << 18  # Bytes that are read in one turn.
_HANDSHAKE_BYTES = 1 << 14  # Bytes of a stranger that are read in one turn.
# Threads for handshakes, each of which takes up to milliseconds of computation.
_THREADS = 2
_LOOPBACK = "127.0.0.1"
_ENOUGH_FILES = 1 << 16
_ASSUMED_FILES = 512  # The limit where the system reports none.


class NetworkListener:
    """Admits clients on a listening socket, in the running asyncio loop.

    Attributes:
      port: The port of the socket.
    """

    def __init__(
        self, service: Service, listening: socket.socket, tls_pair: Sequence[str] | None
    ):
        """Starts to admit clients.

        Args:
          service: The state that all sessions share.
          listening: The socket, which this object closes.
          tls_pair: The certificate chain and the private key, in PEM form; None for
            unencrypted connections.

        Raises:
          ValueError: If the certificate and the key cannot be used together.
        """
        self.port = int(listening.getsockname()[1])
        self._service = service
        self._socket = listening
        self._context = None
        if tls_pair is not None:
            chain, key = (part.encode() for part in tls_pair)
            self._context = tls.server_context(chain, key)
        # The other half is for the clients of the Unix sockets, and for files.
        self._most = _raise_limit_of_files() // 2
        self._clients: set[RemoteProtocol] = set()
        # In order of arrival; a set would not keep the order.
        self._strangers: dict[asyncio.Task[None], None] = {}
        self._scratch = np.empty(_SCRATCH, np.uint8).data
        self._threads = futures.ThreadPoolExecutor(_THREADS, "tfrl-tls")
        self._loop = asyncio.get_running_loop()
        self._accepting = self._loop.create_task(self._accept())
        # The socket must stay open while the loop uses it.
        self._accepting.add_done_callback(lambda _: self._socket.close())

    async def close(self, grace: float) -> None:
        """Stops listening, and ends all connections.

        Args:
          grace: The number of seconds for clients to receive the last messages.
        """
        self._accepting.cancel()
        for stranger in self._strangers:
            stranger.cancel()
        end = self._loop.time() + grace
        while self._loop.time() < end and any(c.is_sending for c in self._clients):
            await asyncio.sleep(grace / 100)
        for client in list(self._clients):
            client.abort()
        await asyncio.sleep(0)  # Transports close their sockets in the next turn.
        self._threads.shutdown(wait=False)

    async def _accept(self) -> None:
        while True:
            try:
                connection, address = await self._loop.sock_accept(self._socket)
            except OSError:  # For example, too many open files.
                await asyncio.sleep(0.1)
                continue
            if len(self._clients) + len(self._strangers) >= self._most:
                connection.close()
            else:
                peer = addresses.join(*address[:2])
                stranger = self._loop.create_task(self._serve(connection, peer))
                self._strangers[stranger] = None
                stranger.add_done_callback(self._strangers.pop)
                if len(self._strangers) > _MOST_STRANGERS:
                    next(iter(self._strangers)).cancel()
            await asyncio.sleep(0)  # Others have their turn, even if many connect.

    async def _serve(self, connection: socket.socket, peer: str) -> None:
        """Admits a client or refuses it."""
        stranger = _Stranger(connection)
        is_admitted = False
        try:
            if await self._knows(stranger, peer):
                await self._admit(stranger, peer)
                is_admitted = True
        except ssl.SSLError as error:
            self._service.events.refused(peer, f"The handshake failed: {error}")
        except TimeoutError:
            reason = f"It has not said within {_PATIENCE:g} s who it is."
            self._service.events.refused(peer, reason)
        except OSError:  # The client has left.
            pass
        finally:
            if not is_admitted:
                connection.close()

    async def _knows(self, stranger: _Stranger, peer: str) -> bool:
        """Returns whether a client may connect; if not, the client has been told why.

        Raises:
          OSError: If the connection is lost, takes too long, or the handshake fails.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._check(stranger)
        except errors.ReverbError as error:
            self._service.events.refused(peer, error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL):
                    await stranger.refuse(error)
            return False
        return True

    async def _admit(self, stranger: _Stranger, peer: str) -> None:
        """Starts a client's session."""
        connection = stranger.connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keepalive.enable(connection)
        client = RemoteProtocol(
            self._service, peer, stranger.layer, self._scratch, self._clients.discard
        )
        self._clients.add(client)
        try:
            await self._loop.connect_accepted_socket(lambda: client, connection)
        except BaseException:
            self._clients.discard(client)
            raise

    async def _check(self, stranger: _Stranger) -> None:
        """Reads a client's preamble, after a handshake if this server uses TLS.

        Raises:
          ReverbError: If the client is refused.
          OSError: If the connection is lost, or the handshake fails.
        """
        first = await stranger.read(1)
        if self._context is not None:
            if first != tls.FIRST_BYTE:
                raise errors.ReplayUnavailable(
                    "The server only accepts encrypted connections: pass "
                    "tls_root_certificates=..., the root certificates (PEM) of its "
                    'certificate, or b"" for the system\'s.'
                )
            await self._shake_hands(stranger, first)
            first = b""
        elif first == tls.FIRST_BYTE:
            raise errors.ReplayUnavailable(
                "The server does not use TLS: leave out tls_root_certificates, or give "
                "the server a certificate."
            )
        rest = await stranger.read(len(framing.MAGIC) - len(first))
        if first + rest != framing.MAGIC:
            raise errors.ProtocolError("This is a replay server of tfrl.")
        digest = await stranger.read(framing.PREAMBLE_SIZE - len(framing.MAGIC))
        if not self._service.admits(digest):
            raise errors.AuthenticationError(
                "The server expects another token: pass token=... or set "
                "TFRL_REPLAY_TOKEN."
            )

    async def _shake_hands(self, stranger: _Stranger, first: bytes) -> None:
        assert self._context is not None
        layer = tls.TlsLayer(self._context)
        layer.feed(first)
        connection = stranger.connection
        is_complete = False
        while not is_complete:
            try:
                is_complete = await self._loop.run_in_executor(
                    self._threads, layer.handshake
                )
            finally:  # An alert tells the client why a handshake fails.
                await self._loop.sock_sendall(connection, layer.take())
            if not is_complete:
                received = await self._loop.sock_recv(connection, _HANDSHAKE_BYTES)
                if not received:
                    raise ConnectionError
                layer.feed(received)
        stranger.layer = layer


class _Stranger:
    """A connection whose client is not known yet.

    Attributes:
      connection: The socket, which does not block.
      layer: The server's end of TLS, after the handshake; None without encryption.
    """

    def __init__(self, connection: socket.socket):
        self.connection = connection
        self.layer: tls.TlsLayer | None = None
        self._loop = asyncio.get_running_loop()

    async def read(self, count: int) -> bytes:
        """Returns the next `count` bytes. Reads no further unencrypted bytes."""
        data = bytearray(count)
        rest = memoryview(data)
        while rest:
            if self.layer is None:
                some: int | None = await self._loop.sock_recv_into(
                    self.connection, rest
                )
            else:
                some = self.layer.read_into(rest)
                if some is None:
                    received = await self._loop.sock_recv(
                        self.connection, _HANDSHAKE_BYTES
                    )
                    some = None if received else 0
                    self.layer.feed(received)
            if some == 0:
                raise ConnectionError
            rest = rest[some or 0 :]
        return bytes(data)

    async def refuse(self, error: Exception) -> None:
        """Sends the reason, and waits until the client has gone."""
        meta = {"code": errors.code_of(error), "message": str(error)}
        message = framing.pack(wire.encode(wire.ERROR, meta), 1 << 16)
        answer = b"".join([framing.MAGIC, *message])
        if self.layer is not None:
            answer = self.layer.encrypt(answer)
        await self._loop.sock_sendall(self.connection, answer)
        self.connection.shutdown(socket.SHUT_WR)
        # With unread bytes, the system would drop data that the client has not
        # received.
        while await self._loop.sock_recv(self.connection, _HANDSHAKE_BYTES):
            pass


def listen(
    service: Service, host: str, port: int, tls_pair: Sequence[str] | None
) -> NetworkListener:
    """Listens on a port, in the running asyncio loop.

    Args:
      service: The state that all sessions share.
      host: The name or address of the interface.
      port: The port; 0 for any free port.
      tls_pair: See `NetworkListener`.

    Raises:
      OSError: If the port is not available.
      ValueError: If the port is out of range, or the certificate and the key cannot be
        used together.
    """
    # "localhost" may be IPv4 or IPv6, which have separate ports.
    listening = _bound(_LOOPBACK if host == "localhost" else host.strip("[]"), port)
    try:
        return NetworkListener(service, listening, tls_pair)
    except BaseException:
        listening.close()
        raise


def _bound(host: str, port: int) -> socket.socket:
    """Returns a socket that listens on a port."""
    if not 0 <= port <= 65535:
        raise ValueError(
            f"port: got {port}, expected a number from 0 to 65535, or None."
        )
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            if sys.platform != "win32":  # Ports that were just released can be used.
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6 and host == "::":
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listening.setblocking(False)
            listening.bind(address)
            listening.listen(_QUEUE)
            return listening
        except BaseException:
            listening.close()
            raise
    except OSError as error:
        text = f"host, port: cannot listen on {host!r}, port {port}: {error.strerror}."
        if error.errno == errno.EADDRINUSE:
            text = (
                f"port: {port} is in use on {host!r}, perhaps by a server that still "
                "runs. Stop it, choose another port, or pass port=None for a free one."
            )
        raise OSError(error.errno, text) from error


def _raise_limit_of_files() -> int:
    """Raises the number of files, including sockets, that this process may have open.

    Returns the limit, which is the old one if the system permits no higher one.
    """
    if sys.platform == "win32":
        return _ASSUMED_FILES
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        # Some systems have a lower limit that they do not report.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return _ENOUGH_FILES if soft == resource.RLIM_INFINITY else soft
