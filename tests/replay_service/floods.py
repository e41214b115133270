"""Sends a replay server far more than it may hold; other clients must not notice.

Each flood is something that a client can send, most of them without a greeting: 64 MB
of JSON, items that are refused, each with a layout of its own, connections that stay
silent, messages and handshakes that never end. Meanwhile another client asks the server
for its tables. Neither the longest time that this client waits, nor the memory by which
the server grows, may be large. With TLS only the floods over TCP are sent.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import random
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.workers import memory
from tests.replay_service import fuzz
from tfrl.replay_service.transport import wire

_LENGTH = struct.Struct("<I")
_PATIENCE = 60.0  # Seconds for the server to answer.
_LONGEST_WAIT = 2.0  # Seconds that another client may wait.
_MOST_GROWTH = 128e6  # Bytes that a flood may add to the server.
_PAUSE = 0.005  # Seconds between two requests of the other client.
_HELD = 0.3  # Seconds for which connections stay open.

Send = Callable[[], str]  # Sends a flood, and returns how the server answered.
Connect = Callable[[], socket.socket]


@dataclasses.dataclass
class Finding:
    """The effects of one flood on the server.

    Attributes:
      name: The name of the flood.
      longest: The longest time in seconds that another client waited.
      peak: The bytes by which the server grew while it was flooded.
      answer: The server's answer.
    """

    name: str
    longest: float = 0.0
    peak: int = 0
    answer: str = ""

    def faults(self) -> list[str]:
        """Returns a line for each fault."""
        checks = {
            f"a client waited for {self.longest:.1f} s": self.longest < _LONGEST_WAIT,
            f"the server grew by {self.peak:,} bytes": self.peak < _MOST_GROWTH,
        }
        return [
            f"{self.name}: {what}" for what, is_right in checks.items() if not is_right
        ]


class Target:
    """A server, and the ways to send bytes to it."""

    def __init__(self, pair: tuple[bytes, bytes] | None = None) -> None:
        """Starts the server and finds its local socket.

        Args:
          pair: The certificate chain and the private key for TLS, or None.
        """
        self.server = fuzz.make_server(pair)
        self.port = self.server.port
        roots = None if pair is None else pair[0]
        self._streams = fuzz.RemoteStreams(self.port, random.Random(0), roots)
        self.local: Mapping[str, Any] | None = self._streams.greet()["local"]

    @property
    def pid(self) -> int:
        """The id of the server's process."""
        return int(self.server._process.pid)

    def connect(self) -> socket.socket:
        """Returns a new connection to the local socket."""
        assert self.local is not None, "This system has no local sockets."
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.local["socket"])
        connection.settimeout(_PATIENCE)
        return connection

    def connect_remotely(self) -> socket.socket:
        """Returns a new connection over TCP that waits for a greeting."""
        connection = self._streams.opened()
        connection.settimeout(_PATIENCE)
        return connection

    def connect_as_stranger(self) -> socket.socket:
        """Returns a new connection over TCP that has sent nothing."""
        return socket.create_connection(("127.0.0.1", self.port), _PATIENCE)

    def hello(self, role: str) -> dict[str, Any]:
        """Returns a valid greeting."""
        secret = None if self.local is None else self.local["secret"]
        return {"protocol": wire.PROTOCOL, "role": role, "secret": secret}


def json_on_socket(target: Target, size: int) -> Send:
    """Sends a greeting of `size` bytes to the local socket."""
    return _asking(target.connect, [_large_json(wire.HELLO, size, target)])


def json_over_tcp(target: Target, size: int) -> Send:
    """Sends a greeting of `size` bytes over TCP."""
    return _asking(target.connect_remotely, [_large_json(wire.HELLO, size, target)])


def json_of_greeted(target: Target, size: int) -> Send:
    """Sends a request with `size` bytes of JSON after a greeting."""
    hello = _message(wire.HELLO, target.hello("control"))
    return _asking(target.connect, [hello, _large_json(wire.INFO, size)])


def json_of_greeted_over_tcp(target: Target, size: int) -> Send:
    """Sends a request with `size` bytes of JSON after a greeting, over TCP."""
    hello = _message(wire.HELLO, target.hello("control"))
    return _asking(target.connect_remotely, [hello, _large_json(wire.INFO, size)])


def refused_layouts(target: Target, size: int) -> Send:
    """Sends `size` bytes of items that refer to a step that was never sent."""
    hello = _message(wire.HELLO, target.hello("writer"))
    return _asking(target.connect, [hello, *_refused_items(size)])


def _refused_items(size: int) -> Iterator[bytes]:
    """Yields WRITE messages whose items each have another layout."""
    schema: dict[str, Any] = {"schema": [["float32", [3], "x"]] * 16}
    steps = [np.arange(1), *[np.zeros((1, 3), np.float32)] * 16]
    orders = itertools.product(range(16), repeat=6)
    number = 0
    while size > 0:
        groups, arrays = [], list(steps)
        for order in itertools.islice(orders, 500):
            number += 1
            columns = [[column, 0, False] for column in order]
            group = {"table": "table", "n": 1, "columns": columns, "lengths": [1]}
            groups.append({**group, "episode": 0})
            arrays += [np.full((1, 1), 10**6), np.ones(1), np.array([number])]
        meta = {**schema, "keep": 0, "episode": 0, "groups": groups}
        message = _message(wire.WRITE, meta, arrays)
        schema, steps = {}, [array[:0] for array in steps]
        size -= len(message)
        yield message


def silent_connections(target: Target, count: int) -> Send:
    """Opens `count` connections that send nothing."""
    return _opening(target.connect, count)


def silent_strangers(target: Target, count: int) -> Send:
    """Opens `count` connections over TCP that send nothing."""
    return _opening(target.connect_as_stranger, count)


def silent_clients(target: Target, count: int) -> Send:
    """Opens `count` connections over TCP that send no greeting."""
    return _opening(target.connect_remotely, count)


def slow_handshakes(target: Target, count: int) -> Send:
    """Opens `count` connections over TCP that begin a handshake."""
    return _opening(target.connect_as_stranger, count, b"\x16\3\1\2\0\1\0\1\xfc\3\3")


def noise(target: Target, size: int) -> Send:
    """Sends `size` bytes in all that are no preamble and no handshake."""
    return _announcing(target.connect_as_stranger, size, os.urandom(1 << 20))


def endless_handshakes(target: Target, size: int) -> Send:
    """Sends `size` bytes in all of records that begin a handshake and do not end it."""
    record = b"\x16\3\1\x40\0" + b"\1\0\xff\xff" + bytes((1 << 14) - 4)
    return _announcing(target.connect_as_stranger, size, record * 64)


def endless_greetings(target: Target, size: int) -> Send:
    """Announces greetings of 512 MB, and sends a megabyte of each, `size` in all."""
    return _announcing(target.connect, size, _endless())


def endless_greetings_over_tcp(target: Target, size: int) -> Send:
    """Does the same over TCP."""
    return _announcing(target.connect_remotely, size, _endless())


def endless_requests(target: Target, size: int) -> Send:
    """Does the same after greetings."""
    hello = _message(wire.HELLO, target.hello("writer"))
    return _announcing(target.connect, size, _endless(hello))


def endless_requests_over_tcp(target: Target, size: int) -> Send:
    """Does the same after greetings, over TCP."""
    hello = _message(wire.HELLO, target.hello("writer"))
    return _announcing(target.connect_remotely, size, _endless(hello))


def _endless(*first: bytes) -> bytes:
    """Returns messages, then a megabyte of one whose announced length is larger."""
    data = b"".join(_LENGTH.pack(len(message)) + message for message in first)
    return data + _LENGTH.pack(wire.MAX_FRAME) + bytes(1 << 20)


def _opening(connect: Connect, count: int, first: bytes = b"") -> Send:
    """Returns a function that opens `count` connections and sends `first` on each."""

    def send() -> str:
        opened = 0
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                with contextlib.suppress(OSError):
                    connection = stack.enter_context(connect())
                    connection.sendall(first)
                    opened += 1
            time.sleep(_HELD)
        return f"{opened} of {count} connections"

    return send


def _announcing(connect: Connect, size: int, data: bytes) -> Send:
    """Returns a function that sends `size` bytes of `data` over several connections."""

    def send() -> str:
        accepted = 0
        with contextlib.ExitStack() as stack:
            for _ in range(size >> 20):
                with contextlib.suppress(OSError):
                    connection = stack.enter_context(connect())
                    connection.sendall(data)
                    accepted += 1
            time.sleep(_HELD)
        return f"{accepted} of {size >> 20} messages were read"

    return send


_FLOODS: Mapping[str, tuple[Callable[[Target, int], Send], int]] = {
    "JSON before the greeting, socket": (json_on_socket, 64 << 20),
    "JSON before the greeting, TCP": (json_over_tcp, 64 << 20),
    "JSON after the greeting, socket": (json_of_greeted, 64 << 20),
    "JSON after the greeting, TCP": (json_of_greeted_over_tcp, 64 << 20),
    "refused layouts": (refused_layouts, 48 << 20),
    "silent connections": (silent_connections, 900),
    "silent connections, TCP": (silent_strangers, 900),
    "silent clients, TCP": (silent_clients, 900),
    "slow handshakes": (slow_handshakes, 900),
    "noise": (noise, 256 << 20),
    "endless handshakes": (endless_handshakes, 256 << 20),
    "endless greetings": (endless_greetings, 256 << 20),
    "endless greetings, TCP": (endless_greetings_over_tcp, 256 << 20),
    "endless requests": (endless_requests, 32 << 20),
    "endless requests, TCP": (endless_requests_over_tcp, 32 << 20),
}
_OF_SOCKET = (
    *(json_on_socket, json_of_greeted, refused_layouts, silent_connections),
    *(endless_greetings, endless_requests),
)


def flood(share: float, pair: tuple[bytes, bytes] | None = None) -> list[Finding]:
    """Floods a new server in each way; returns the findings.

    Args:
      share: The share of each flood that is sent.
      pair: See `Target`.
    """
    findings = []
    target = Target(pair)
    try:
        for name, (prepare, size) in _FLOODS.items():
            if prepare in _OF_SOCKET and (target.local is None or pair is not None):
                continue  # TLS does not change what comes over the socket.
            send = prepare(target, int(size * share))
            findings.append(_measured(name, target, send))
    finally:
        target.server.stop()
    return findings


def _measured(name: str, target: Target, send: Send) -> Finding:
    finding = Finding(name)
    done = threading.Event()
    client = target.server.localhost_client()
    client.server_info()
    before = memory.held(target.pid)

    def ask() -> None:
        while not done.is_set():
            started = time.monotonic()
            client.server_info(_PATIENCE)
            finding.longest = max(finding.longest, time.monotonic() - started)
            time.sleep(_PAUSE)

    def watch() -> None:
        while not done.is_set():
            finding.peak = max(finding.peak, memory.held(target.pid) - before)
            time.sleep(10 * _PAUSE)

    threads = [threading.Thread(target=work) for work in (ask, watch)]
    for thread in threads:
        thread.start()
    try:
        finding.answer = send()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    return finding


def _large_json(kind: int, size: int, target: Target | None = None) -> bytes:
    """Returns a message whose JSON has many small values, the slowest to read.

    Args:
      kind: The kind of the message.
      size: The approximate number of bytes.
      target: The server, if the message is a greeting.
    """
    meta = {} if target is None else target.hello("control")
    text = b"".join(wire.encode(kind, {**meta, "more": []}))
    start = text.index(b'"more":[') + len(b'"more":[')
    more = b"[]," * (size // 3) + b"[]"
    head = struct.Struct("<2sBBIH")
    magic, version, kind, length, arrays = head.unpack_from(text)
    fixed = head.pack(magic, version, kind, length + len(more), arrays)
    return fixed + text[head.size : start] + more + text[start:]


def _message(kind: int, meta: Any, arrays: Sequence[np.ndarray] = ()) -> bytes:
    return b"".join(wire.encode(kind, meta, arrays))


def _asking(connect: Connect, messages: Sequence[bytes]) -> Send:
    """Returns a function that sends messages, and returns the last answer."""

    def send() -> str:
        answers: list[bytes] = []
        with connect() as connection:
            reader = threading.Thread(target=_read, args=(connection, answers))
            is_encrypted = isinstance(connection, ssl.SSLSocket)
            if not is_encrypted:  # `ssl` cannot read and write at the same time.
                reader.start()
            with contextlib.suppress(OSError):
                for message in messages:
                    connection.sendall(_LENGTH.pack(len(message)))
                    connection.sendall(message)
                if not is_encrypted:
                    connection.shutdown(socket.SHUT_WR)
            if is_encrypted:
                reader.start()
            reader.join()
        return _text(answers[-1]) if answers else "no answer"

    return send


def _read(connection: socket.socket, answers: list[bytes]) -> None:
    with contextlib.suppress(OSError):
        while (message := fuzz.received(connection)) is not None:
            answers[:] = [message]


def _text(message: bytes) -> str:
    """Returns the text of an error, or the kind of another message."""
    frame = wire.decode(message)
    return str(frame.meta.get("message", f"a message of kind {frame.kind}"))
