"""Messages over a socket, whose server may close it at any time."""

import socket
import threading

import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.transport import connection, framing, keepalive, wire

if not hasattr(socket, "AF_UNIX"):
    pytest.skip("This system has no Unix sockets.", allow_module_level=True)


@pytest.fixture
def refuse(tmp_path):
    """A function that starts a server that reads some bytes, answers, and closes."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    threads = []

    def start(answer):
        def serve():
            accepted, _ = listener.accept()
            with accepted:
                accepted.recv(4)
                accepted.sendall(answer)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return connection.connect_to_socket(str(tmp_path / "s"), 10.0)

    yield start
    for thread in threads:
        thread.join()
    listener.close()


def send_until_it_fails(stream):
    stream.send([bytes(16 << 20)])
    while not stream.pump():
        pass


def test_the_reason_of_a_refusal_arrives_though_the_message_was_not_read(refuse):
    answer = wire.encode(wire.ERROR, {"code": "resource_exhausted", "message": "no"})
    stream = refuse(b"".join(framing.pack(answer, 1 << 16)))
    send_until_it_fails(stream)
    frame = wire.decode(stream.receive(10.0))
    assert isinstance(errors.from_meta(frame.meta), errors.ResourceExhaustedError)
    with pytest.raises(errors.ConnectionLost):
        stream.receive(10.0)
    with pytest.raises(errors.ConnectionLost):
        stream.send([b"more"])
    stream.close()


def test_a_connection_that_closes_without_a_word_is_lost(refuse):
    stream = refuse(b"")
    with pytest.raises(errors.ConnectionLost):
        send_until_it_fails(stream)
    stream.close()


def test_a_host_that_is_gone_ends_a_wait_without_a_limit(refuse, monkeypatch):
    stream = refuse(b"")
    monkeypatch.setattr(keepalive, "PERIOD", 0.01)
    assert stream.receive(0.05) is None
    monkeypatch.setattr(keepalive, "is_dead", lambda _: True)
    with pytest.raises(errors.ConnectionLost, match="host does not answer"):
        stream.receive(None)
    monkeypatch.undo()
    stream.send([b"1234"])
    with pytest.raises(errors.ConnectionLost):
        stream.receive(10.0)
    stream.close()
