"""A leader and its followers, in one process and killed in another."""

import os
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

host_relay = pytest.importorskip(
    "tfrl.distribute.weights.host_relay", exc_type=ImportError
)
SECONDS = 60.0


@pytest.fixture
def name(tmp_path):
    return str(tmp_path)


class Leads:
    """Serves in a thread; publishes between its turns."""

    def __init__(self, name):
        self.leader = host_relay.lead(name)
        self._waker, self._closer = socket.socketpair()
        self._messages = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        while self._closer.fileno() >= 0:
            while self._messages:
                self.leader.publish(*self._messages.pop(0))
            self.leader.serve(0.01, self._waker)
        self.leader.close()

    def publish(self, number, *arrays):
        self._messages.append((number, arrays))

    def close(self):
        self._closer.close()
        self._thread.join(SECONDS)
        self._waker.close()


@pytest.fixture
def leads(name):
    leads = Leads(name)
    yield leads
    leads.close()


def until(follower, number):
    """Returns the bytes of a message, after those that come before it."""
    while (received := follower.receive(SECONDS)) is None or received[0] != number:
        pass
    return bytes(received[1])


def test_followers_get_the_bytes_of_each_message_and_late_ones_the_newest(name, leads):
    early = host_relay.follow(name)
    assert early.receive(SECONDS) is None  # There is no message yet.
    first = np.arange(6, dtype=np.int16).reshape(2, 3)
    leads.publish(5, first, np.float64(0.5))
    assert until(early, 5) == first.tobytes() + np.float64(0.5).tobytes()
    leads.publish(4, first.T)
    assert until(early, 4) == first.T.tobytes()
    late = host_relay.follow(name)
    number, data = late.receive(SECONDS)
    assert (number, bytes(data)) == (4, first.T.tobytes())
    with pytest.raises(TypeError, match="read"):
        data[0] = 1
    assert early.receive(0.0) is None
    early.close()
    late.close()


def test_a_slow_follower_gets_the_newest_message_and_none_between(name, leads):
    slow, quick = host_relay.follow(name), host_relay.follow(name)
    leads.publish(1, np.ones(3))
    until(quick, 1)
    leads.publish(2, np.ones(4))
    until(quick, 2)
    leads.publish(3, np.ones(5))
    until(quick, 3)
    received = []
    while not received or received[-1] != 3:
        message = slow.receive(SECONDS)
        received += [message[0]] if message is not None else []
    # What was sent before it took anything may be the first one.
    assert received in ([3], [1, 3])
    slow.close()
    quick.close()


def test_there_is_one_leader_until_it_is_killed(name):
    program = (
        "from tfrl.distribute.weights import host_relay\n"
        f"leader = host_relay.lead({name!r})\n"
        "print(flush=True)\n"
        "leader.serve(1000.0)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    assert host_relay.lead(name) is None
    follower = host_relay.follow(name)
    assert follower.receive(SECONDS) is None
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(host_relay.LeaderLostError, match="has ended"):
        follower.receive(SECONDS)
    process.communicate()
    follower.close()
    host_relay.lead(name).close()
    assert host_relay.follow(name) is None


def test_processes_of_other_users_take_no_part(name, leads, monkeypatch):
    follower = host_relay.follow(name)
    follower.receive(SECONDS)
    monkeypatch.setattr(host_relay, "_is_own", lambda _: False)
    assert host_relay.follow(name) is None
    follower.close()
    monkeypatch.undo()
    # A process that connects itself, as another user would have to.
    address = host_relay._address(name)
    monkeypatch.setattr(host_relay, "_is_own", lambda _: False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.connect(address)
        assert stranger.recv(100) == b""


def test_files_that_can_change_are_refused(name):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(host_relay._address(name))
    listener.listen()
    follower = host_relay.follow(name)
    leader, _ = listener.accept()
    file = os.memfd_create("open", os.MFD_ALLOW_SEALING)
    os.write(file, bytes(8))
    socket.send_fds(leader, [host_relay._HEADER.pack(1, 8)], [file])
    with pytest.raises(host_relay.LeaderLostError, match="not one of 8 bytes"):
        follower.receive(SECONDS)
    os.close(file)
    for each in (follower, leader, listener):
        each.close()
