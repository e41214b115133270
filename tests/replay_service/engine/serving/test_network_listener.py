"""Strangers are few and have little time; clients that know the token are admitted."""

import asyncio
import contextlib
import pathlib
import socket
import sys
import time

import pytest

from tfrl.replay_service import errors, rate_limiters
from tfrl.replay_service import item_selectors as selectors
from tfrl.replay_service.engine.serving import network_listener
from tfrl.replay_service.engine.serving.service import Service
from tfrl.replay_service.table import Table
from tfrl.replay_service.transport import connection, framing, tcp_connection, tls, wire

DATA = pathlib.Path(__file__).parents[2] / "data"
CERTIFICATE = (DATA / "certificate.pem").read_bytes()
PAIR = [(DATA / name).read_text() for name in ("certificate.pem", "key.pem")]
OTHER = (DATA / "other_certificate.pem").read_bytes()
HELLO = {"protocol": wire.PROTOCOL, "role": "control"}


def serving(check, *, tls_pair=None, token=None, host="127.0.0.1"):
    """Runs `check(service, listener)` in a thread while a listener serves."""

    async def serve():
        fifo = selectors.Fifo()
        table = Table("t", fifo, fifo, 100, rate_limiters.MinSize(1))
        service = Service([table.to_config()], shared=False, token=token)
        listener = network_listener.listen(service, host, 0, tls_pair)
        try:
            await asyncio.to_thread(check, service, listener)
        finally:
            service.stop()
            await listener.close(0.5)

    asyncio.run(serve())


def open_ones(connections):
    """Returns the `connections` that the server has not closed."""
    still = []
    for one in connections:
        one.setblocking(False)
        with contextlib.suppress(ConnectionError):
            with contextlib.suppress(BlockingIOError):
                while one.recv(1 << 16):
                    pass
                continue
            still.append(one)
    return still


def until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def tables_of(port, roots=None, token=None, host="localhost"):
    """Returns the tables that a client is told of."""
    link = connection.connect(
        f"{host}:{port}", "control", tls=roots, token=token, timeout=10
    )
    link.send(wire.INFO)
    names = [table["name"] for table in link.receive(10).meta["tables"]]
    link.close()
    return names


def answer_to(port, data):
    """Sends `data`; returns the message before which the server ends the connection."""
    with socket.create_connection(("127.0.0.1", port), 10) as stranger:
        stranger.sendall(data)
        answer = b"".join(iter(lambda: stranger.recv(4096), b""))
    assert answer.startswith(framing.MAGIC)
    return wire.decode(answer[8:]).meta


# Not a byte, a part of the preamble, and a part of a handshake.
@pytest.mark.parametrize(
    ("said", "tls_pair"),
    [(b"", None), (b"TFRL12", None), (b"", PAIR), (b"\x16\3\1\2\0\1\0", PAIR)],
)
def test_strangers_are_soon_closed_and_nobody_waits_for_them(
    monkeypatch, said, tls_pair
):
    monkeypatch.setattr(network_listener, "_PATIENCE", 1.0)
    roots = None if tls_pair is None else CERTIFICATE

    def check(service, listener):
        strangers = [
            socket.create_connection(("127.0.0.1", listener.port)) for _ in range(5)
        ]
        for one in strangers:
            one.sendall(said)
        assert tables_of(listener.port, roots) == ["t"]
        assert len(open_ones(strangers)) == 5
        until(lambda: not open_ones(strangers))
        for one in strangers:
            one.close()
        until(lambda: not listener._strangers)

    serving(check, tls_pair=tls_pair)


def test_the_stranger_that_has_waited_longest_gives_way(monkeypatch):
    monkeypatch.setattr(network_listener, "_MOST_STRANGERS", 3)

    def check(service, listener):
        strangers = []
        for _ in range(5):
            strangers.append(socket.create_connection(("127.0.0.1", listener.port)))
            until(lambda: len(open_ones(strangers)) == min(len(strangers), 3))
        assert open_ones(strangers) == strangers[2:]
        assert tables_of(listener.port) == ["t"]
        for one in strangers:
            one.close()

    serving(check)


def test_connections_beyond_the_limit_are_closed(monkeypatch):
    monkeypatch.setattr(network_listener, "_raise_limit_of_files", lambda: 10)

    def check(service, listener):
        links = [
            connection.connect(f"localhost:{listener.port}", "control", timeout=10)
            for _ in range(4)
        ]
        held, refused = (
            socket.create_connection(("127.0.0.1", listener.port)) for _ in range(2)
        )
        until(lambda: open_ones([held, refused]) == [held])
        links.pop().close()
        until(lambda: len(listener._clients) == 3)
        assert tables_of(listener.port) == ["t"]
        for one in (*links, held, refused):
            one.close()

    serving(check)


def test_no_byte_behind_the_preamble_is_read_before_the_token_is_checked():
    def check(service, listener):
        digest = framing.token_digest("wrong")
        meta = answer_to(listener.port, framing.MAGIC + digest + bytes(1 << 20))
        assert meta["code"] == "unauthenticated"
        assert service.incoming.size == service.kept == len(service.sessions) == 0
        for token in ("", "wrong", None):
            with pytest.raises(errors.AuthenticationError, match="TFRL_REPLAY_TOKEN"):
                tables_of(listener.port, token=token)
        assert tables_of(listener.port, token="right") == ["t"]

    serving(check, token="right")


@pytest.mark.parametrize("tls_pair", [None, PAIR])
def test_what_is_no_preamble_is_refused_at_once(tls_pair):
    def check(service, listener):
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"TFRX", bytes(4)):
            assert "code" in answer_to(listener.port, data)
        roots = None if tls_pair is None else CERTIFICATE
        assert tables_of(listener.port, roots) == ["t"]

    serving(check, tls_pair=tls_pair)


@pytest.mark.parametrize(
    ("tls_pair", "roots", "text"),
    [
        (PAIR, None, "only accepts encrypted .*: pass tls_root_certificates="),
        (None, CERTIFICATE, "does not use TLS: leave out tls_root_certificates"),
        (PAIR, OTHER, "tls_root_certificates: they do not verify.*Give the root"),
        (PAIR, b"", "tls_root_certificates: they do not verify"),
    ],
)
def test_sides_that_do_not_agree_on_tls_are_told_what_to_change(tls_pair, roots, text):
    def check(service, listener):
        with pytest.raises(errors.ReplayUnavailable, match=text):
            connection.connect(
                f"localhost:{listener.port}", "control", tls=roots, timeout=0.1
            )

    serving(check, tls_pair=tls_pair)


def test_a_certificate_for_another_name_is_refused():
    def check(service, listener):
        with pytest.raises(
            errors.ReplayUnavailable, match=r"127\.0\.0\.2.*a name that"
        ):
            connection.connect(
                f"127.0.0.2:{listener.port}", "control", tls=CERTIFICATE, timeout=0.1
            )
        assert tables_of(listener.port, CERTIFICATE, host="127.0.0.1") == ["t"]

    serving(check, tls_pair=PAIR, host="0.0.0.0")


def test_encrypted_bytes_that_were_changed_end_their_connection_alone():
    def check(service, listener):
        address = f"localhost:{listener.port}"
        first, other = (
            connection.connect(address, "control", tls=CERTIFICATE, timeout=10)
            for _ in range(2)
        )
        first._stream._socket.send(b"\x17\3\3\0\x20" + bytes(32))
        with pytest.raises(errors.ConnectionLost):
            first.receive(10)
        other.send(wire.INFO)
        assert other.receive(10).kind == wire.INFO_REPLY
        for link in (first, other):
            link.close()

    serving(check, tls_pair=PAIR)


@pytest.mark.parametrize("tls_pair", [None, PAIR])
def test_the_reason_arrives_though_more_was_sent_than_was_read(tls_pair):
    def check(service, listener):
        roots = None if tls_pair is None else CERTIFICATE
        stream = tcp_connection.connect(
            f"localhost:{listener.port}", roots, None, timeout=10
        )
        stream.send(wire.encode(wire.HELLO, {"more": "x" * (16 << 20)}))
        frame = wire.decode(stream.receive(10))
        assert "expected at most 65536" in frame.meta["message"]
        stream.close()

    serving(check, tls_pair=tls_pair)


def test_a_client_without_a_greeting_is_refused(monkeypatch):
    from tfrl.replay_service.engine.serving import sessions

    monkeypatch.setattr(sessions, "_HELLO_DEADLINE", 0.1)

    def check(service, listener):
        meta = answer_to(listener.port, framing.preamble_of_client(None))
        assert "Got no greeting" in meta["message"]

    serving(check)


def test_a_client_whose_host_is_gone_is_dropped(monkeypatch):
    from tfrl.replay_service.transport import keepalive

    def check(service, listener):
        link = connection.connect(f"localhost:{listener.port}", "control", timeout=10)
        monkeypatch.setattr(keepalive, "is_dead", lambda _: True)
        until(lambda: not listener._clients)
        assert not service.sessions
        link.close()

    monkeypatch.setattr(keepalive, "PERIOD", 0.05)
    serving(check)


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
@pytest.mark.parametrize(
    ("host", "names"),
    [("::1", ["[::1]"]), ("[::1]", ["[::1]"]), ("::", ["[::1]", "127.0.0.1"])],
)
def test_ipv6_is_served(host, names):
    def check(service, listener):
        for name in names:
            assert tables_of(listener.port, host=name) == ["t"]

    serving(check, host=host)


def test_a_certificate_and_a_key_that_do_not_fit_are_an_error():
    with pytest.raises(ValueError, match="tls: cannot use the certificate chain"):
        tls.server_context(OTHER, PAIR[1].encode())


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        (1024, 4096, 4096),
        (1024, 1 << 20, 1 << 16),
        (1024, None, 1 << 16),
        (1024, 1024, 1024),
        (1 << 18, 1 << 20, 1 << 18),
        (None, None, 1 << 16),
    ],
)
def test_the_limit_is_raised_up_to_what_the_system_permits(
    soft, hard, expected, monkeypatch
):
    resource = pytest.importorskip("resource")
    soft, hard = (resource.RLIM_INFINITY if n is None else n for n in (soft, hard))
    limits = [soft, hard]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(
        resource, "setrlimit", lambda _, given: limits.__setitem__(slice(None), given)
    )
    assert network_listener._raise_limit_of_files() == expected
    assert limits[1] == hard
    assert soft in (expected, resource.RLIM_INFINITY) or limits[0] == expected


def test_a_limit_that_cannot_be_raised_is_taken_as_it_is(monkeypatch):
    def refuse(*_):
        raise ValueError

    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert network_listener._raise_limit_of_files() == 256


def test_a_system_without_this_limit_has_an_assumed_one(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert network_listener._raise_limit_of_files() == 512
