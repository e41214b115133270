"""Connections from clients to a replay server.

A client first connects over TCP. A server on the same host answers with the path of a
Unix socket. A client that uses the socket can also read the server's memory, if both
sides support this. Clients that cannot use the socket keep using TCP.
"""

from __future__ import annotations

import logging
import os
import pathlib
import random
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.transport import addresses, socket_stream, tcp_connection, wire
from tfrl.replay_service.transport import tls as tls_lib
from tfrl.system import log

if TYPE_CHECKING:
    from tfrl.replay_service.transport.arena_view import ArenaView

TOKEN_VARIABLE = "TFRL_REPLAY_TOKEN"
# The transport between processes of one host: "shared" memory with the Unix socket,
# only the "unix" socket, or only "tcp".
TRANSPORT_VARIABLE = "TFRL_REPLAY_TRANSPORT"

_LOGGER = logging.getLogger("tfrl.replay_service")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 1.0  # Seconds between attempts to connect.
_LONGEST_TRY = 10.0  # Seconds for a server to answer an attempt.
_ONLY_TRY = 0.5  # Seconds for an attempt of a caller without a timeout.
_SOCKET_BUFFER = 1 << 20  # Bytes of a Unix socket that the system keeps each way.
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_TRANSPORTS = ("shared", "unix", "tcp")

# Separate from the generator that users seed: connecting must not change their draws.
_RANDOM = random.Random()

# The token of this process; None for the token in the environment.
_own_token: str | None = None

# The local sockets of servers of this host, by address and token.
_local_servers: dict[tuple[str, str | None], dict[str, Any]] = {}
_warned: set[str] = set()


def connect(
    address: str,
    role: str,
    *,
    token: str | None = None,
    tls: bytes | None = None,
    timeout: float = 30.0,
    hello: Mapping[str, Any] | None = None,
    shared: bool = True,
) -> Connection:
    """Connects to a server. Keeps trying until it answers or time is up.

    The environment variable TFRL_REPLAY_TRANSPORT restricts processes of one host to
    the Unix socket ("unix") or to TCP ("tcp").

    Args:
      address: "host:port".
      role: "control", "writer" or "sampler".
      token: The server's token, if it has one; by default the environment variable
        TFRL_REPLAY_TOKEN.
      tls: Root certificates (PEM) that verify the server's certificate; empty for the
        system's root certificates; by default the file that the environment variable
        TFRL_REPLAY_TLS_CERTIFICATE names, and if there is none, the connection is not
        encrypted.
      timeout: The number of seconds to keep trying; 0 for one attempt.
      hello: Additional fields of the greeting, such as a writer's id.
      shared: Whether to read the server's memory if possible.

    Raises:
      ReplayUnavailable: If no server answers in time, or immediately if this process
        started the server and it has died.
      AuthenticationError: If the server refuses the token.
      ValueError: If the environment names an unknown transport, or `tls` holds no
        certificates.
    """
    transport = _transport()
    shared = shared and transport == "shared"
    token = default_token() if token is None else token
    tls = default_roots() if tls is None else tls
    if tls and _CERTIFICATE not in tls:
        raise ValueError(
            f"tls_root_certificates: got {len(tls)} bytes without {_CERTIFICATE!r}, "
            "expected certificates in the PEM format."
        )
    greeting = {"protocol": wire.PROTOCOL, "role": role, **(hello or {})}
    started = time.monotonic()
    deadline = started + (timeout or _ONLY_TRY)
    pause = _FIRST_PAUSE
    while True:
        remaining = min(deadline - time.monotonic(), _LONGEST_TRY)
        try:
            return _try(
                address,
                greeting,
                (tls, token),
                remaining,
                shared,
                local=transport != "tcp",
            )
        except errors.ReplayUnavailable as error:
            reason = error
        death = addresses.death_of(address)
        if death is not None:
            raise errors.ReplayUnavailable(death) from None
        elapsed = time.monotonic() - started
        pause = min(2 * pause, _LONGEST_PAUSE, timeout - elapsed)
        if pause < _FIRST_PAUSE / 2:
            raise errors.ReplayUnavailable(
                f"No replay server answered at {address!r} within {elapsed:.1f} s "
                f"(timeout={timeout:g}). Last reason: {reason} Start the server, check "
                "host and port, or raise the timeout: Client(..., timeout=seconds)."
            ) from reason
        time.sleep(pause * _RANDOM.uniform(0.5, 1.0))


class Connection:
    """Exchanges messages with a server. Only one thread may use it at a time.

    Attributes:
      welcome: The server's answer to the greeting: `server_id`, `tables` and more.
      shared: Whether samples arrive as slots in the server's memory; see `arena`.
      address: The address of the server.
    """

    def __init__(
        self,
        stream: socket_stream.SocketStream,
        welcome: dict[str, Any],
        address: str,
        shared: bool,
    ):
        """Creates a connection; `connect` calls this.

        Args:
          stream: The stream of messages.
          welcome: See the attribute.
          address: See the attribute.
          shared: See the attribute.
        """
        self.welcome = welcome
        self.shared = shared
        self.address = address
        self._stream = stream
        self._pid = os.getpid()
        self._closed = False

    def __del__(self) -> None:
        """Ends a connection that nobody closed."""
        if not sys.is_finalizing():
            self.close()

    def send(
        self,
        kind: int,
        meta: Mapping[str, Any] | None = None,
        arrays: Sequence[np.ndarray] = (),
    ) -> None:
        """Sends a message without waiting; see `wire.encode`.

        Args:
          kind: The kind of the message.
          meta: The JSON object of the message.
          arrays: The arrays of the message, which must not change until `pump` returns
            True.

        Raises:
          ConnectionLost: If the connection is lost, or belongs to the process from
            which this process was forked.
          ResourceExhaustedError: If the message is too large.
        """
        self._check_usable()
        self._stream.send(wire.encode(kind, meta, arrays))

    def pump(self) -> bool:
        """Continues to send messages; returns whether everything has been sent.

        Raises:
          ConnectionLost: If the connection is lost.
        """
        self._check_usable()
        return self._stream.pump()

    def receive(self, timeout: float | None = None) -> wire.Frame | None:
        """Returns the server's next message, or None when time is up.

        Messages with the reason why a request has to wait are logged, not returned. An
        ERROR message is returned; `errors.from_meta(frame.meta)` is its exception.

        Args:
          timeout: The number of seconds to wait; None for no limit, 0 to not wait.

        Raises:
          ConnectionLost: If the connection is lost.
          ProtocolError: If the received bytes are not a valid message.
        """
        self._check_usable()
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            message = self._stream.receive(timeout)
            if message is None:
                return None
            frame = wire.decode(message)
            if frame.kind != wire.WAITING:
                return frame
            said = frame.meta.get("message", "Waiting for the server.")
            _LOGGER.warning("%s", log.plain(said))
            if deadline is not None:
                timeout = max(deadline - time.monotonic(), 0.0)

    def arena(self, schema_id: Any) -> ArenaView:
        """Returns a view of the server's memory for a schema; requires `shared`.

        Raises:
          OSError: If the memory is not available.
        """
        from tfrl.replay_service.transport import arena_view

        local = self.welcome["local"]
        return arena_view.attach(local["arena_socket"], local["secret"], schema_id)

    def close(self) -> None:
        """Ends the connection. Unsent bytes are lost."""
        if self._closed:
            return
        self._closed = True
        if self._pid == os.getpid():
            self._stream.close()

    def _check_usable(self) -> None:
        if self._closed:
            raise errors.ConnectionLost("The connection has been closed.")
        if self._pid != os.getpid():
            raise errors.ConnectionLost(
                "The connection belongs to the process that this one was forked from."
            )


def default_token() -> str | None:
    """Returns the token of this process, or the token in the environment, or None."""
    return _own_token or os.environ.get(TOKEN_VARIABLE) or None


def set_default_token(token: str | None) -> None:
    """Sets the token of this process, which no other process sees, not even a child.

    Args:
      token: The token; None for the token in the environment.
    """
    global _own_token
    _own_token = token


def default_roots() -> bytes | None:
    """Returns the certificates in the file that the environment names, or None.

    Raises:
      ValueError: If the file cannot be read.
    """
    path = os.environ.get(tls_lib.CERTIFICATE_VARIABLE)
    if not path:
        return None
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise ValueError(
            f"{tls_lib.CERTIFICATE_VARIABLE}: cannot read {path!r} "
            f"({error.strerror}); name the file of the servers' certificate, or unset "
            "the variable."
        ) from None


def _transport() -> str:
    """Returns the transport named in the environment, or the default.

    Raises:
      ValueError: If the environment names an unknown transport.
    """
    transport = os.environ.get(TRANSPORT_VARIABLE) or _TRANSPORTS[0]
    if transport not in _TRANSPORTS:
        raise ValueError(
            f"{TRANSPORT_VARIABLE}: got {transport!r}, expected one of "
            f"{', '.join(_TRANSPORTS)}; unset it for the fastest."
        )
    return transport


def _try(
    address: str,
    greeting: dict[str, Any],
    credentials: tuple[bytes | None, str | None],
    timeout: float,
    shared: bool,
    local: bool,
) -> Connection:
    """Tries to connect once: over the last known local socket, then over TCP."""
    deadline = time.monotonic() + timeout
    known = (address, credentials[1])
    place = _local_servers.get(known) if local else None
    if place is not None:
        try:
            return _connect_locally(address, place, greeting, deadline, shared)
        except (OSError, errors.ReplayUnavailable):
            # The server has ended or was replaced. Connecting over TCP shows which.
            _local_servers.pop(known, None)
    remaining = max(deadline - time.monotonic(), 0.0)
    stream = tcp_connection.connect(address, *credentials, remaining)
    try:
        welcome = _greet(stream, greeting, deadline)
    except BaseException:
        stream.close()
        raise
    if not local:
        return Connection(stream, {**welcome, "local": None}, address, shared=False)
    place = welcome.get("local")
    reason: object = "the server offers no local socket"
    if place is not None and hasattr(socket, "AF_UNIX"):
        try:
            connection = _connect_locally(address, place, greeting, deadline, shared)
        except (OSError, errors.ReverbError) as error:
            reason = error
        else:
            stream.close()
            _local_servers[known] = place
            return connection
    _warn_of_slowness(address, reason)
    return Connection(stream, {**welcome, "local": None}, address, shared=False)


def _connect_locally(
    address: str,
    local: Mapping[str, Any],
    greeting: Mapping[str, Any],
    deadline: float,
    shared: bool,
) -> Connection:
    stream = connect_to_socket(str(local["socket"]), deadline - time.monotonic())
    shared = shared and bool(local.get("arena_socket"))
    more = {"secret": local["secret"], "shared": shared}
    try:
        welcome = _greet(stream, {**greeting, **more}, deadline)
    except BaseException:
        stream.close()
        raise
    return Connection(stream, {**welcome, "local": dict(local)}, address, shared)


def connect_to_socket(path: str, timeout: float) -> socket_stream.SocketStream:
    """Connects to a server of this host.

    Args:
      path: The path of the server's socket.
      timeout: The number of seconds to wait for the server to accept.

    Raises:
      OSError: If no server listens on the socket.
    """
    if sys.platform == "win32":
        raise OSError("Python has no Unix sockets on Windows")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(max(timeout, 0.01))
        connection.connect(path)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BUFFER)
        connection.setblocking(False)
        return socket_stream.SocketStream(connection)
    except BaseException:
        connection.close()
        raise


def _greet(
    stream: socket_stream.SocketStream, greeting: Mapping[str, Any], deadline: float
) -> dict[str, Any]:
    stream.send(wire.encode(wire.HELLO, greeting))
    message = stream.receive(max(deadline - time.monotonic(), 0.01))
    if message is None:
        raise errors.ConnectionLost(
            "The server accepted the connection, but did not answer in time."
        )
    frame = wire.decode(message)
    if frame.kind == wire.ERROR:
        raise errors.from_meta(frame.meta)
    if frame.kind != wire.WELCOME:
        raise errors.ProtocolError(
            f"Got a message of kind {frame.kind} in answer to a greeting."
        )
    return frame.meta


def _warn_of_slowness(address: str, reason: object) -> None:
    host = address.rsplit(":", 1)[0]
    if not host.startswith(addresses.LOOPBACK) or not hasattr(socket, "AF_UNIX"):
        return
    if address in _warned:
        return
    _warned.add(address)
    _LOGGER.warning(
        "The replay server at %r is on this host, but its local socket cannot be used "
        "(%s): using TCP instead, which is slower.",
        address,
        str(reason).rstrip("."),
    )
