"""Clients over TCP: what they say first, and how long they wait for whom."""

import contextlib
import pathlib
import socket
import threading

import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.transport import framing, tcp_connection, wire

DATA = pathlib.Path(__file__).parents[1] / "data"
CERTIFICATE = (DATA / "certificate.pem").read_bytes()


@contextlib.contextmanager
def listening(serve):
    """Passes a connection to `serve`; yields the address."""

    def run():
        accepted, _ = listener.accept()
        with accepted, contextlib.suppress(OSError):
            serve(accepted)
            done.wait(20)

    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield f"localhost:{listener.getsockname()[1]}"
        finally:
            done.set()
            thread.join()


def test_the_token_comes_before_the_first_message():
    seen = []

    def serve(accepted):
        seen.append(accepted.recv(framing.PREAMBLE_SIZE, socket.MSG_WAITALL))
        seen.append(accepted.recv(8, socket.MSG_WAITALL))
        answer = wire.encode(wire.WELCOME, {"a": 1})
        accepted.sendall(framing.MAGIC[:2])
        accepted.sendall(b"".join([framing.MAGIC[2:], *framing.pack(answer, 100)]))

    with listening(serve) as address:
        stream = tcp_connection.connect(address, None, "a token", 10.0)
        stream.send([b"1234"])
        assert wire.decode(stream.receive(10.0)).meta == {"a": 1}
        stream.close()
    assert seen == [framing.preamble_of_client("a token"), b"\4\0\0\0001234"]


@pytest.mark.parametrize("said", [b"", b"\x16\3\3\0\x40\2"])
def test_a_handshake_that_does_not_end_is_given_up(said):
    with (
        listening(lambda accepted: accepted.sendall(said)) as address,
        pytest.raises(errors.ConnectionLost, match="handshake in time"),
    ):
        tcp_connection.connect(address, CERTIFICATE, None, 0.1)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (b"TFRL\0\0\0\0", "does not use TLS: leave out tls_root_certificates"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not use TLS"),
        (b"\x15\3\3\0\2\2\x28", "The TLS handshake failed"),
    ],
)
def test_a_handshake_that_fails_says_why(said, text):
    with (
        listening(lambda accepted: accepted.sendall(said)) as address,
        pytest.raises(errors.ConnectionLost, match=text),
    ):
        tcp_connection.connect(address, CERTIFICATE, None, 10.0)


def test_a_server_that_leaves_during_the_handshake_is_lost():
    with (
        listening(lambda accepted: accepted.shutdown(socket.SHUT_RDWR)) as address,
        pytest.raises(errors.ConnectionLost),
    ):
        tcp_connection.connect(address, CERTIFICATE, None, 10.0)


def test_where_nobody_listens_the_addresses_are_named():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        with pytest.raises(
            errors.ConnectionLost, match=r"No connection \(127\.0\.0\.1: "
        ):
            tcp_connection.connect(f"127.0.0.1:{one.getsockname()[1]}", None, None, 1.0)


def test_a_name_that_nobody_has_is_an_error(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(
        errors.ConnectionLost, match="host 'nowhere' cannot be found: N"
    ):
        tcp_connection.connect("nowhere:1", None, None, 1.0)
