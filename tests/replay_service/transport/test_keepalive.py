"""Dead hosts are told from busy ones by what their systems leave unanswered."""

import socket
import sys

import pytest

from tfrl.replay_service.transport import keepalive


class Fake:
    """A connection with so many repetitions and unanswered probes."""

    def __init__(self, repeated=0, probes=0):
        self._fields = bytes([1, 0, repeated, probes])

    def getsockopt(self, level, option, size):
        return self._fields[:size]


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says")
def test_a_host_is_dead_once_data_or_probes_stay_unanswered():
    assert not keepalive.is_dead(Fake())
    assert not keepalive.is_dead(Fake(repeated=6, probes=6))
    assert keepalive.is_dead(Fake(repeated=7))
    assert keepalive.is_dead(Fake(probes=7))


def test_a_connection_that_is_alive_is_not_dead_and_is_watched():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
        with one, other:
            keepalive.enable(one)
            assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            one.sendall(b"x")
            assert not keepalive.is_dead(one)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")
def test_unix_sockets_are_never_dead():
    for one in socket.socketpair():
        with one:
            assert not keepalive.is_dead(one)
