"""Sends a replay server far more than it may hold; other clients must not notice.

    python -m benchmarks.service_floods

Each flood is something that a client can send, most of them without a greeting: 64 MB
of JSON, items that are refused, each with a layout of its own, connections that stay
silent, messages that never end. Meanwhile another client asks the server for its
tables. For each flood, the script prints the longest time that this client waited, and
the memory by which the server grew; the exit status is 1 if one is too large.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import grpc
import numpy as np

from benchmarks import check_command, service_fuzz
from benchmarks.workers import memory
from tfrl.replay_service.transport import framing, wire

_LENGTH = struct.Struct("<I")
_PATIENCE = 60.0  # Seconds for the server to answer.
_LONGEST_WAIT = 2.0  # Seconds that another client may wait.
_MOST_GROWTH = 128e6  # Bytes that a flood may add to the server.
_PAUSE = 0.005  # Seconds between two requests of the other client.
_HELD = 0.3  # Seconds for which connections stay open.
_SETTLED = 0.2  # Seconds after which a flood should have left no traces.

Send = Callable[[], str]  # Sends a flood, and returns how the server answered.


@dataclasses.dataclass
class Finding:
    """What one flood did to the server.

    Attributes:
      name: The name of the flood.
      longest: The longest time in seconds that another client waited.
      peak: The bytes by which the server grew while it was flooded.
      kept: The bytes by which it was larger afterwards.
      answer: What the server answered.
    """

    name: str
    longest: float = 0.0
    peak: int = 0
    kept: int = 0
    answer: str = ""

    def __str__(self) -> str:
        """Returns the measurements on one line."""
        return (
            f"{self.name:34} longest wait {self.longest:6.2f} s, growth "
            f"{self.peak / 1e6:7.1f} MB, afterwards {self.kept / 1e6:7.1f} MB: "
            f"{self.answer:.90}"
        )

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

    def __init__(self) -> None:
        """Starts the server and finds its local socket."""
        self.server = service_fuzz.make_server()
        self.address = f"localhost:{self.server.port}"
        streams = service_fuzz.GrpcStreams(self.address)
        self.local: Mapping[str, Any] | None = streams.greet()["local"]
        streams.close()

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

    def hello(self, role: str) -> dict[str, Any]:
        """Returns a valid greeting for the local socket."""
        secret = None if self.local is None else self.local["secret"]
        return {"protocol": wire.PROTOCOL, "role": role, "secret": secret}


def json_on_socket(target: Target, size: int) -> Send:
    """Sends a greeting of `size` bytes to the local socket."""
    return _asking(target, [_large_json(wire.HELLO, size, target.hello("control"))])


def json_over_grpc(target: Target, size: int) -> Send:
    """Sends a greeting of `size` bytes over gRPC."""
    return _calling(target, [_large_json(wire.HELLO, size, target.hello("control"))])


def json_in_parts(target: Target, size: int) -> Send:
    """Sends a greeting of `size` bytes over gRPC in parts, as a client would."""
    message = _large_json(wire.HELLO, size, target.hello("control"))
    return _calling(target, _parts(message))


def json_of_greeted(target: Target, size: int) -> Send:
    """Sends a request with `size` bytes of JSON after a greeting."""
    hello = _message(wire.HELLO, target.hello("control"))
    return _asking(target, [hello, _large_json(wire.INFO, size, {})])


def json_of_greeted_in_parts(target: Target, size: int) -> Send:
    """Sends a request with `size` bytes of JSON after a greeting, over gRPC."""
    hello = _message(wire.HELLO, target.hello("control"))
    parts = _parts(_large_json(wire.INFO, size, {}))
    return _calling(target, [hello, *parts])


def refused_layouts(target: Target, size: int) -> Send:
    """Sends `size` bytes of items that refer to a step that was never sent."""
    hello = _message(wire.HELLO, target.hello("writer"))
    return _asking(target, [hello, *_refused_items(size)])


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

    def send() -> str:
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(target.connect())
            time.sleep(_HELD)
        return f"{count} connections"

    return send


def endless_greetings(target: Target, size: int) -> Send:
    """Announces greetings of 512 MB, and sends a megabyte of each, `size` in all."""
    return _announcing(target, size, [])


def endless_requests(target: Target, size: int) -> Send:
    """Does the same after greetings."""
    return _announcing(target, size, [_message(wire.HELLO, target.hello("writer"))])


def _announcing(target: Target, size: int, first: Sequence[bytes]) -> Send:
    data = b"".join(_LENGTH.pack(len(message)) + message for message in first)
    data += _LENGTH.pack(wire.MAX_FRAME) + bytes(1 << 20)

    def send() -> str:
        accepted = 0
        with contextlib.ExitStack() as stack:
            for _ in range(size >> 20):
                connection = stack.enter_context(target.connect())
                with contextlib.suppress(OSError):
                    connection.sendall(data)
                    accepted += 1
            time.sleep(_HELD)
        return f"{accepted} of {size >> 20} messages were read"

    return send


_FLOODS: Mapping[str, tuple[Callable[[Target, int], Send], int]] = {
    "JSON before the greeting, socket": (json_on_socket, 64 << 20),
    "JSON before the greeting, gRPC": (json_over_grpc, 64 << 20),
    "the same, in parts": (json_in_parts, 64 << 20),
    "JSON after the greeting, socket": (json_of_greeted, 64 << 20),
    "JSON after the greeting, gRPC": (json_of_greeted_in_parts, 64 << 20),
    "refused layouts": (refused_layouts, 48 << 20),
    "silent connections": (silent_connections, 900),
    "endless greetings": (endless_greetings, 256 << 20),
    "endless requests": (endless_requests, 32 << 20),
}
_WITHOUT_SOCKET = (json_over_grpc, json_in_parts, json_of_greeted_in_parts)


def flood(
    share: float = 1.0, say: Callable[[str], None] = lambda line: None
) -> list[Finding]:
    """Floods a new server in each way; returns the findings.

    Args:
      share: The share of each flood that is sent.
      say: Called with a line for each finding.
    """
    findings = []
    target = Target()
    try:
        for name, (prepare, size) in _FLOODS.items():
            if target.local is None and prepare not in _WITHOUT_SOCKET:
                continue
            send = prepare(target, int(size * share))
            findings.append(_measured(name, target, send))
            say(str(findings[-1]))
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
    time.sleep(_SETTLED)
    finding.kept = memory.held(target.pid) - before
    return finding


def _parts(message: bytes) -> list[bytes]:
    return [b"".join(part) for part in framing.split([message])]


def _large_json(kind: int, size: int, meta: Mapping[str, Any]) -> bytes:
    """Returns a message whose JSON has many small values, the slowest to read."""
    text = b"".join(wire.encode(kind, {**meta, "more": []}))
    start = text.index(b'"more":[') + len(b'"more":[')
    more = b"[]," * (size // 3) + b"[]"
    head = struct.Struct("<2sBBIH")
    magic, version, kind, length, arrays = head.unpack_from(text)
    fixed = head.pack(magic, version, kind, length + len(more), arrays)
    return fixed + text[head.size : start] + more + text[start:]


def _message(kind: int, meta: Any, arrays: Sequence[np.ndarray] = ()) -> bytes:
    return b"".join(wire.encode(kind, meta, arrays))


def _asking(target: Target, messages: Sequence[bytes]) -> Send:
    """Returns what sends messages to the local socket, and returns the last answer."""

    def send() -> str:
        answers: list[bytes] = []
        with target.connect() as connection:
            reader = threading.Thread(target=_read, args=(connection, answers))
            reader.start()
            with contextlib.suppress(OSError):
                for message in messages:
                    connection.sendall(_LENGTH.pack(len(message)))
                    connection.sendall(message)
                connection.shutdown(socket.SHUT_WR)
            reader.join()
        return _text(answers[-1]) if answers else "no answer"

    return send


def _read(connection: socket.socket, answers: list[bytes]) -> None:
    with contextlib.suppress(OSError):
        while (message := _received(connection)) is not None:
            answers[:] = [message]


def _received(connection: socket.socket) -> bytes | None:
    head = connection.recv(_LENGTH.size, socket.MSG_WAITALL)
    if len(head) < _LENGTH.size:
        return None
    return connection.recv(*_LENGTH.unpack(head), socket.MSG_WAITALL)


def _calling(target: Target, messages: Sequence[bytes]) -> Send:
    """Returns what sends messages over gRPC, and returns the last answer."""

    def send() -> str:
        answer = "no answer"
        options = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(target.address, options) as channel:
            start = channel.stream_stream("/tfrl.Replay/Session")
            try:
                for message in start(iter(messages), timeout=_PATIENCE):
                    answer = _text(message)
            except grpc.RpcError as error:
                answer = str(error.details())
        return answer

    return send


def _text(message: bytes) -> str:
    """Returns the text of an error, or the kind of another message."""
    frame = wire.decode(message)
    return str(frame.meta.get("message", f"a message of kind {frame.kind}"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the check; returns the exit status."""
    parser = check_command.parser("service_floods", __doc__)
    parser.add_argument("--share", type=float, default=1.0)
    options = parser.parse_args(arguments)
    findings = flood(options.share, print)
    return check_command.conclude(
        list(itertools.chain(*(f.faults() for f in findings)))
    )


if __name__ == "__main__":
    sys.exit(main())
