import contextlib
import logging
import os
import socket
import struct
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.transport import connection, framing, tcp_connection, wire


class _Server:
    """Answers greetings, and any other message by `answer`, on both transports."""

    def __init__(
        self,
        answer: Callable[[wire.Frame], list[tuple]],
        local: bool = True,
        port: int = 0,
    ):
        self.answer = answer
        self.token: str | None = None
        self.greetings: list[dict[str, Any]] = []
        self._directory = tempfile.TemporaryDirectory()
        self._path = os.path.join(self._directory.name, "socket")
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(self._path)
        unix.listen()
        tcp = socket.create_server(("127.0.0.1", port))
        self._listeners = [unix, tcp]
        self._sockets: list[socket.socket] = []
        self.local = {"socket": self._path, "arena_socket": "", "secret": "s"}
        self.offered = self.local if local else None
        for listener in self._listeners:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        self.address = f"localhost:{tcp.getsockname()[1]}"

    def replies(self, message: wire.Buffer) -> list[bytes]:
        frame = wire.decode(message)
        if frame.kind != wire.HELLO:
            answers = self.answer(frame)
        else:
            self.greetings.append(frame.meta)
            answers = [(wire.WELCOME, {"server_id": "1", "local": self.offered})]
        return [b"".join(wire.encode(*answer)) for answer in answers]

    def drop(self) -> None:
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.drop()
        self._directory.cleanup()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            self._sockets.append(accepted)
            threading.Thread(
                target=self._serve, args=(accepted,), name="server", daemon=True
            ).start()

    def _serve(self, accepted: socket.socket) -> None:
        file = accepted.makefile("rb")
        if accepted.family != socket.AF_UNIX:
            accepted.sendall(framing.MAGIC)
            if file.read(framing.PREAMBLE_SIZE) != framing.preamble_of_client(
                self.token
            ):
                refusal = {"code": "unauthenticated", "message": "Wrong token."}
                message = b"".join(wire.encode(wire.ERROR, refusal))
                accepted.sendall(struct.pack("<I", len(message)) + message)
                accepted.shutdown(socket.SHUT_WR)
                return
        while head := file.read(4):
            message = file.read(struct.unpack("<I", head)[0])
            for reply in self.replies(message):
                accepted.sendall(struct.pack("<I", len(reply)) + reply)


def _echo(frame: wire.Frame) -> list[tuple]:
    return [(wire.OK, frame.meta, frame.arrays)]


@pytest.fixture
def server() -> Iterator[_Server]:
    server = _Server(_echo)
    yield server
    server.stop()


@pytest.fixture
def remote_server() -> Iterator[_Server]:
    server = _Server(_echo, local=False)
    yield server
    server.stop()


def _echoed(link: connection.Connection, *arrays: np.ndarray) -> list[np.ndarray]:
    link.send(wire.INFO, {"n": len(arrays)}, arrays)
    frame = link.receive(10)
    assert frame is not None
    assert frame.meta == {"n": len(arrays)}
    return frame.arrays


def test_a_server_of_this_host_is_reached_by_its_socket(server):
    link = connection.connect(server.address, "control", timeout=5)
    assert link.welcome["local"] == server.local
    assert [g.get("secret") for g in server.greetings] == [None, "s"]
    # The next one goes there at once.
    connection.connect(server.address, "sampler", timeout=5).close()
    assert server.greetings[-1] == {
        "protocol": wire.PROTOCOL,
        "role": "sampler",
        "secret": "s",
        "shared": False,
    }
    assert len(server.greetings) == 3
    link.close()


def test_the_environment_says_what_processes_of_one_host_share(
    server, monkeypatch, caplog
):
    server.local["arena_socket"] = "somewhere"
    seen = []
    for transport in ("shared", "unix", "tcp"):
        monkeypatch.setenv("TFRL_REPLAY_TRANSPORT", transport)
        link = connection.connect(server.address, "sampler", timeout=5)
        seen.append((link.welcome["local"] is not None, link.shared))
        link.close()
    assert seen == [(True, True), (True, False), (False, False)]
    assert not caplog.messages
    monkeypatch.setenv("TFRL_REPLAY_TRANSPORT", "pigeon")
    with pytest.raises(ValueError, match="got 'pigeon', expected one of shared, unix"):
        connection.connect(server.address, "sampler")


@pytest.mark.parametrize("which", ["server", "remote_server"])
def test_messages_of_all_sizes_come_back_as_sent(which, request):
    link = connection.connect(
        request.getfixturevalue(which).address, "control", timeout=5
    )
    for size in (0, 1, 1000, 65_000, 65_536, 65_540, 3_000_000):
        sent = np.arange(size, dtype=np.uint8)
        one, two = _echoed(link, sent, np.float64(size))
        np.testing.assert_array_equal(one, sent)
        assert two == size
    link.close()


@pytest.mark.parametrize("which", ["server", "remote_server"])
def test_sending_does_not_wait_for_the_other_side_to_read(which, request):
    server = request.getfixturevalue(which)
    go_on = threading.Event()

    def answer(frame: wire.Frame) -> list[tuple]:
        go_on.wait(20)
        return [(wire.OK, frame.meta)]

    server.answer = answer
    link = connection.connect(server.address, "writer", timeout=5)
    data = np.zeros(4_000_000, np.uint8)
    for i in range(5):
        link.send(wire.WRITE, {"i": i}, [data])
    assert link.receive(0) is None
    assert link.receive(0.01) is None
    go_on.set()
    assert [link.receive(20).meta["i"] for _ in range(5)] == [0, 1, 2, 3, 4]
    assert link.pump()
    link.close()


def test_what_a_request_waits_for_is_logged(server, caplog):
    server.answer = lambda frame: [
        (wire.WAITING, {"message": "Table 't' has 1 item, it wants 2."}),
        (wire.OK, {}),
    ]
    link = connection.connect(server.address, "control", timeout=5)
    with caplog.at_level(logging.WARNING, "tfrl.replay_service"):
        link.send(wire.INFO)
        assert link.receive(5).kind == wire.OK
    assert caplog.messages == ["Table 't' has 1 item, it wants 2."]
    link.close()


def test_a_server_that_goes_away_is_noticed(server):
    link = connection.connect(server.address, "control", timeout=5)
    threading.Timer(0.05, server.drop).start()
    with pytest.raises(errors.ConnectionLost, match="closed the connection"):
        link.receive(10)
    link.close()
    with pytest.raises(errors.ConnectionLost, match="has been closed"):
        link.send(wire.INFO)


def test_a_remote_server_that_goes_away_is_noticed(remote_server):
    link = connection.connect(remote_server.address, "control", timeout=5)
    threading.Timer(0.05, remote_server.stop).start()
    with pytest.raises(errors.ConnectionLost):
        link.receive(10)
    link.close()


def test_a_server_that_is_not_there_is_tried_until_time_is_up():
    with socket.socket() as one:  # Bound, but nothing listens.
        one.bind(("localhost", 0))
        address = f"localhost:{one.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(
            errors.ReplayUnavailable,
            match=f"(?s)at '{address}' within .* s .timeout=0.4.*127.0.0.1: .*Start",
        ):
            connection.connect(address, "control", timeout=0.4)
        assert time.monotonic() - started < 3


def test_a_server_that_comes_later_is_reached():
    with socket.socket() as one:
        one.bind(("localhost", 0))
        address = f"localhost:{one.getsockname()[1]}"
    late: list[_Server] = []

    def start() -> None:
        late.append(_Server(_echo, local=False, port=int(address.split(":")[1])))

    threading.Timer(0.3, start).start()
    link = connection.connect(address, "control", timeout=20)
    assert _echoed(link, np.ones(3))[0].tolist() == [1, 1, 1]
    link.close()
    late[0].stop()


def test_a_wrong_token_is_final(remote_server, monkeypatch):
    remote_server.token = "right"
    with pytest.raises(errors.AuthenticationError, match="Wrong token"):
        connection.connect(remote_server.address, "control", timeout=60, token="nö")
    assert not remote_server.greetings
    monkeypatch.setenv("TFRL_REPLAY_TOKEN", "right")
    connection.connect(remote_server.address, "control", timeout=5).close()


def test_the_slower_way_on_one_host_is_warned_of_once(remote_server, caplog):
    with caplog.at_level(logging.WARNING, "tfrl.replay_service"):
        for _ in range(2):
            connection.connect(remote_server.address, "control", timeout=5).close()
    (message,) = caplog.messages
    assert "is on this host, but its local socket cannot be used" in message


def test_a_socket_left_behind_is_replaced_by_the_new_server_s(server):
    connection.connect(server.address, "control", timeout=5).close()
    known = connection._local_servers[server.address, None]
    connection._local_servers[server.address, None] = {**known, "socket": "/gone"}
    link = connection.connect(server.address, "control", timeout=5)
    assert link.welcome["local"] == server.local
    link.close()


# What servers of HTTP/1.1, of HTTP/2 and of SSH say first, or after any bytes.
@pytest.mark.parametrize(
    "words",
    [b"HTTP/1.1 400 Bad Request\r\n", bytes([0, 0, 18, 4, 0]), b"SSH-2.0-x\r\n"],
)
def test_another_server_is_told_apart(words):
    def speak() -> None:
        accepted, _ = listener.accept()
        with accepted:
            accepted.sendall(words)
            done.wait(20)

    done = threading.Event()
    with socket.create_server(("localhost", 0)) as listener:
        speaker = threading.Thread(target=speak)
        speaker.start()
        address = f"localhost:{listener.getsockname()[1]}"
        with pytest.raises(errors.ReplayUnavailable, match="not a tfrl replay service"):
            connection._try(address, {}, (None, None), 20.0, shared=True, local=True)
        done.set()
        speaker.join()


def test_a_forked_process_does_not_use_its_parent_s_connection(server):
    link = connection.connect(server.address, "control", timeout=5)
    link._pid += 1
    with pytest.raises(errors.ConnectionLost, match="forked"):
        link.send(wire.INFO)
    link._pid -= 1
    link.close()


@pytest.mark.parametrize(("timeout", "most"), [(0.05, 0.05), (0.0, 1.0)])
def test_an_attempt_keeps_to_the_caller_s_time_if_there_is_any(
    monkeypatch, timeout, most
):
    waited, pauses = [], []
    # A clock that goes on by what is waited, however slow the machine is.
    clock = types.SimpleNamespace(
        monotonic=lambda: sum(waited) + sum(pauses), sleep=pauses.append
    )
    monkeypatch.setattr(connection, "time", clock)

    class Silent:
        def __init__(self, *_: Any):
            pass

        def send(self, _: Any) -> None:
            pass

        def receive(self, seconds: float) -> None:
            waited.append(seconds)

        def close(self) -> None:
            pass

    monkeypatch.setattr(tcp_connection, "connect", Silent)
    with pytest.raises(errors.ReplayUnavailable, match="did not answer in time"):
        connection.connect("localhost:1", "control", timeout=timeout)
    assert waited
    assert all(0.0 < seconds <= most for seconds in waited)


def test_a_dropped_connection_leaves_neither_thread_nor_socket(remote_server):
    before = set(threading.enumerate())
    link = connection.connect(remote_server.address, "control", timeout=5)
    new = {thread.name for thread in set(threading.enumerate()) - before}
    assert new <= {"server"}
    raw = link._stream._socket
    assert raw.fileno() >= 0
    del link
    assert raw.fileno() < 0
