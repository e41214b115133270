"""Sends invalid messages to a replay server, which must neither end nor grow.

Messages of every kind are truncated, extended, changed in some bytes or in their JSON,
sent in any order or without a greeting; and some lengths are announced without the
message. Half of them go over TCP, half over the local socket. Some connections over TCP
begin with other bytes than they should; with TLS, some begin or end with bytes that are
not encrypted. Between them the server has to answer valid requests.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
import random
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.workers import memory
from tfrl import replay_service as reverb
from tfrl.replay_service.transport import framing, tls, wire

_TABLES = ("table", "other")
_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 7, 255, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**400),
    *(0.5, -1.0, 1e308, float("nan"), float("inf"), "", "table", "x" * 5_000),
    *("float32", "object", "int64", [], {}, [[]], [0], [-1], [2**40], {"a": {}}),
    [[0, 0, False]] * 300,
)
_DTYPES = ("int64", "uint64", "float64", "float32", "uint8", "bool", "complex128")
_PATIENCE = 10.0  # Seconds for the server to answer a valid request.
_LENGTH = struct.Struct("<I")


@dataclasses.dataclass
class Findings:
    """The measurements.

    Attributes:
      sent: The number of messages sent.
      longest: The longest time in seconds that the server took to answer.
      grown: The bytes by which its memory grew after the first fifth of the messages.
      open_files: The number of additional files that it has open at the end.
      alive: Whether it is still running.
    """

    sent: int = 0
    longest: float = 0.0
    grown: int = 0
    open_files: int = 0
    alive: bool = True

    def faults(self) -> list[str]:
        """Returns a line for each fault."""
        checks = {
            "the server ended": self.alive,
            f"it took {self.longest:.1f} s to answer": self.longest < _PATIENCE,
            f"it grew by {self.grown:,} bytes": self.grown < 32e6,
            f"it has {self.open_files} more files open": self.open_files < 32,
        }
        return [what for what, is_right in checks.items() if not is_right]


def make_server(pair: tuple[bytes, bytes] | None = None) -> reverb.Server:
    """Starts a server with some items in its tables.

    Args:
      pair: The certificate chain and the private key for TLS, or None.
    """
    tables = [
        reverb.Table(
            name,
            sampler=reverb.selectors.Prioritized(1.0),
            remover=reverb.selectors.Fifo(),
            max_size=100,
            rate_limiter=reverb.rate_limiters.MinSize(1),
        )
        for name in _TABLES
    ]
    server = reverb.Server(tables, tls=pair)
    with server.localhost_client().trajectory_writer(2) as writer:
        for i in range(50):
            writer.append({"x": np.full(3, i, np.float32), "y": np.int64(i)})
            item = {"x": writer.history["x"][-1:], "y": writer.history["y"][-1:]}
            writer.create_item("table", 1.0, item)
    return server


def fuzz(
    messages: int, seed: int = 0, pair: tuple[bytes, bytes] | None = None
) -> Findings:
    """Sends `messages` invalid messages to a new server.

    Args:
      messages: Their number.
      seed: The seed of their contents.
      pair: See `make_server`.
    """
    server = make_server(pair)
    findings = Findings()
    rng = random.Random(seed)
    try:
        pid = server._process.pid
        client = server.localhost_client()
        remote = RemoteStreams(server.port, rng, None if pair is None else pair[0])
        local = remote.greet()["local"]
        streams: list[Streams] = [remote]
        if local is not None:
            streams.append(LocalStreams(local["socket"], local["secret"], rng))
        files, before = _open_files(pid), 0
        while findings.sent < messages and findings.alive:
            for stream in streams:
                findings.sent += stream.send(list(_conversation(rng, stream.hello)))
            if findings.sent % 50 < 5:
                _look(findings, client, pid)
            if not before and findings.sent > messages / 5:
                before = memory.held(pid)
        for stream in streams:
            stream.close()
        _look(findings, client, pid)
        findings.grown = memory.held(pid) - before
        findings.open_files = _settled(lambda: _open_files(pid) - files)
    finally:
        server.stop()
    return findings


def _look(findings: Findings, client: reverb.Client, pid: int) -> None:
    """Sends the server a valid request, and measures the time to the answer."""
    started = time.monotonic()
    try:
        client.server_info(_PATIENCE)
    except reverb.errors.ReverbError:
        findings.alive = _is_running(pid)
    findings.longest = max(findings.longest, time.monotonic() - started)


class Streams:
    """Conversations, each on its own connection.

    Some announce a wrong length, some close immediately, and some stay open.
    """

    def __init__(self, hello: Mapping[str, Any], rng: random.Random) -> None:
        """Prepares the conversations.

        Args:
          hello: Additional fields of greetings.
          rng: Draws the announced lengths and how each conversation ends.
        """
        self.hello = hello
        self._rng = rng
        self._left_open: list[socket.socket] = []

    def connect(self) -> socket.socket:
        """Returns a connection, ready for messages."""
        raise NotImplementedError

    def send(self, messages: Sequence[bytes]) -> int:
        """Sends messages, and discards the answers; returns the number of messages."""
        connection = None
        with contextlib.suppress(OSError):
            connection = self.connect()
            for message in messages:
                connection.sendall(_LENGTH.pack(self._length(message)) + message)
            if self._rng.random() < 0.05:
                self._left_open.append(connection)
                return len(messages)
            self._end(connection)
        if connection is not None:
            connection.close()
        return len(messages)

    def close(self) -> None:
        """Closes the connections that were left open."""
        for connection in self._left_open:
            connection.close()

    def _end(self, connection: socket.socket) -> None:
        if self._rng.random() < 0.8:
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass

    def _length(self, message: bytes) -> int:
        if self._rng.random() < 0.95:
            return len(message)
        lies = (0, len(message) - 1, len(message) + 9, wire.MAX_FRAME, 2**32 - 1)
        return max(0, self._rng.choice(lies))


class LocalStreams(Streams):
    """Conversations over the local socket."""

    def __init__(self, path: str, secret: str, rng: random.Random) -> None:
        """Prepares the conversations.

        Args:
          path: The path of the server's local socket.
          secret: The secret that the server requires.
          rng: See `Streams`.
        """
        super().__init__({"secret": secret, "shared": True}, rng)
        self._path = path

    def connect(self) -> socket.socket:
        """Returns a connection to the local socket."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_PATIENCE)
        connection.connect(self._path)
        return connection


class RemoteStreams(Streams):
    """Conversations over TCP, with or without TLS.

    Some begin with other bytes than they should. With TLS, some begin or end with bytes
    that are not encrypted.
    """

    def __init__(
        self, port: int, rng: random.Random, roots: bytes | None = None
    ) -> None:
        """Prepares the conversations.

        Args:
          port: The server's port on this host.
          rng: See `Streams`.
          roots: The root certificates (PEM) of the server's; None without TLS.
        """
        super().__init__({}, rng)
        self._port = port
        self._context = None if roots is None else tls.client_context(roots)

    def greet(self) -> dict[str, Any]:
        """Returns the server's reply to a greeting."""
        hello = {"protocol": wire.PROTOCOL, "role": "control"}
        with self.opened() as connection:
            connection.sendall(
                b"".join(framing.pack(wire.encode(wire.HELLO, hello), 0))
            )
            reply = received(connection)
        assert reply is not None, "The server closed the connection."
        return wire.decode(reply).meta

    def opened(self) -> socket.socket:
        """Returns a connection that the server has admitted."""
        connection = self._encrypted(self._raw())
        connection.sendall(framing.preamble_of_client(None))
        first = connection.recv(len(framing.MAGIC))
        assert first == framing.MAGIC, first
        return connection

    def connect(self) -> socket.socket:
        """Returns a connection, whose first bytes may be wrong."""
        connection = self._raw()
        if self._rng.random() < 0.03:
            connection.sendall(self._noise())
        connection = self._encrypted(connection)
        first = framing.preamble_of_client(None)
        if self._rng.random() < 0.05:
            first = self._rng.choice((first[:20], self._noise(), first + self._noise()))
        connection.sendall(first)
        return connection

    def _end(self, connection: socket.socket) -> None:
        if isinstance(connection, ssl.SSLSocket) and self._rng.random() < 0.1:
            with socket.socket(fileno=os.dup(connection.fileno())) as raw:
                raw.sendall(self._noise())
        super()._end(connection)

    def _raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), _PATIENCE)

    def _encrypted(self, connection: socket.socket) -> socket.socket:
        if self._context is None:
            return connection
        return self._context.wrap_socket(connection, server_hostname="localhost")

    def _noise(self) -> bytes:
        """Returns random bytes, some of which look like the beginning of TLS."""
        starts = (
            b"",
            b"\x16\3\1\2\0\1\0\1\xfc\3\3",
            b"\x17\3\3\0\x30",
            b"TFRL",
            b"GET ",
        )
        return self._rng.choice(starts) + self._rng.randbytes(self._rng.randrange(600))


def received(connection: socket.socket) -> bytes | None:
    """Returns the next message of a server; None at the end of the connection."""
    data = b""
    for count in (_LENGTH.size, None):
        wanted = _LENGTH.unpack(data)[0] if count is None else count
        data = b""
        while len(data) < wanted:  # TLS cannot wait for all bytes.
            some = connection.recv(wanted - len(data))
            if not some:
                return None
            data += some
    return data


def _conversation(rng: random.Random, hello: Mapping[str, Any]) -> Iterator[bytes]:
    """Yields a greeting in most cases, then messages, most of them invalid."""
    role = rng.choice(("control", "writer", "sampler"))
    greeting = {"protocol": wire.PROTOCOL, "role": role, **hello}
    if role == "writer":
        greeting["writer_id"] = str(rng.randrange(100))
    if rng.random() < 0.9:
        meta = _changed(greeting, rng) if rng.random() < 0.1 else greeting
        yield _joined(wire.HELLO, meta)
    kinds = [*_ROLES[role]] * 3 + [*_MESSAGES]
    for _ in range(rng.randrange(1, 5)):
        yield _message(rng.choice(kinds), rng)


def _message(kind: int, rng: random.Random) -> bytes:
    """Returns a message of a kind, changed in one of several ways or not at all."""
    meta, arrays = _MESSAGES[kind]
    meta, arrays = copy.deepcopy(meta), list(arrays)
    way = rng.randrange(8)
    if way == 0:
        for _ in range(rng.randrange(1, 4)):
            meta = _changed(meta, rng)
    elif way == 1 and arrays:
        at = rng.randrange(len(arrays))
        arrays[at : at + rng.randrange(2)] = [_any_array(rng)] * rng.randrange(3)
    elif way == 2 and arrays:
        at = rng.randrange(len(arrays))
        # Other numbers, such as of steps that were never sent.
        change = rng.choice((-1, 1, 10**6, -(10**6)))
        with np.errstate(over="ignore"):
            arrays[at] = arrays[at] + np.array(change).astype(arrays[at].dtype)
    message = bytearray(_joined(kind, meta, arrays))
    if way == 3:
        del message[rng.randrange(len(message)) :]
    elif way == 4:
        message += rng.randbytes(rng.randrange(1, 100))
    elif way == 5:
        for _ in range(rng.randrange(1, 6)):
            message[rng.randrange(len(message))] = rng.randrange(256)
    elif way == 6:
        # Where lengths and counts are.
        at = rng.randrange(min(60, len(message) - 4))
        message[at : at + 4] = _LENGTH.pack(rng.choice((0, 2**31, 2**32 - 1)))
    return bytes(message)


def _changed(value: Any, rng: random.Random) -> Any:
    """Returns a copy of a JSON value in which a part is changed or missing."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
    return rng.choice(_VALUES)


def _any_array(rng: random.Random) -> np.ndarray:
    shape = tuple(rng.choice((0, 1, 2, 3, 50)) for _ in range(rng.randrange(4)))
    size = int(np.prod(shape))
    return (
        np.frombuffer(rng.randbytes(16 * size), np.uint8)[
            : size * np.dtype(dtype := rng.choice(_DTYPES)).itemsize
        ]
        .view(dtype)
        .reshape(shape)
    )


def _joined(kind: int, meta: Any, arrays: Sequence[np.ndarray] = ()) -> bytes:
    return b"".join(wire.encode(kind, meta, arrays))


def _write_message() -> tuple[dict[str, Any], list[np.ndarray]]:
    """Returns a message with three steps, and two items of two steps."""
    meta = {
        "schema": [["float32", [3], "x"], ["int64", [], "y"]],
        "keep": 1,
        "episode": 0,
        "groups": [
            {
                "table": "table",
                "n": 2,
                "columns": [[0, 0, False], [1, 1, True]],
                "lengths": [2, 1],
                "episode": 0,
            }
        ],
    }
    steps = [np.arange(3), np.ones((3, 3), np.float32), np.arange(3)]
    items = [np.array([[0, 1, 1], [1, 2, 2]]), np.ones(2), np.array([1, 2])]
    return meta, steps + items


_KEYS = np.array([1, 2**33, 2**64 - 1], np.uint64)
_SAMPLE = {"table": "table", "num": 3, "timeout_ms": 5, "request": 1, "release": 0}
_MESSAGES: dict[int, tuple[dict[str, Any], list[np.ndarray]]] = {
    wire.HELLO: ({"protocol": wire.PROTOCOL, "role": "control"}, []),
    wire.INFO: ({}, []),
    wire.RESET: ({"table": "other"}, []),
    wire.MUTATE: ({"table": "table"}, [_KEYS, np.ones(3), _KEYS[:1]]),
    wire.SAMPLE: (_SAMPLE, []),
    wire.RELEASE: ({"release": 1}, []),
    wire.WRITE: _write_message(),
    wire.WELCOME: ({"server_id": "mine", "tables": {}}, []),
    wire.SAMPLES: ({"request": 1, "layout": 0, "done": True}, [_KEYS]),
    99: ({"what": "is this"}, [_KEYS]),
}
_ROLES = {
    "control": (wire.INFO, wire.RESET, wire.MUTATE),
    "sampler": (wire.SAMPLE, wire.RELEASE),
    "writer": (wire.WRITE,),
}


def _open_files(pid: int) -> int:
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0


def _settled(value: Callable[[], int]) -> int:
    """Returns a decreasing value once it is small, or after ten seconds."""
    for _ in range(20):
        if value() < 8:
            break
        time.sleep(0.5)
    return value()


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
