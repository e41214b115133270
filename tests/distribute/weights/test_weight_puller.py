"""Pullers of one host: what they transfer from a server, and what they hand on."""

import socket
import time

import numpy as np
import pytest

from tfrl import replay_service
from tfrl.distribute.weights import weight_puller

LEAVES = [
    weight_puller.Leaf((2, 2), np.float32, "kernel"),
    weight_puller.Leaf((), np.int64, "step"),
]
SPECS = [(leaf.shape, leaf.dtype) for leaf in LEAVES]
SECONDS, PERIOD = 60.0, 0.005


@pytest.fixture
def host_relay():
    return pytest.importorskip(
        "tfrl.distribute.weights.host_relay", exc_type=ImportError
    )


@pytest.fixture
def client():
    table = replay_service.Table(
        "weights",
        sampler=replay_service.selectors.Uniform(),
        remover=replay_service.selectors.Fifo(),
        max_size=1,
        rate_limiter=replay_service.rate_limiters.MinSize(1),
    )
    server = replay_service.Server([table])
    yield server.localhost_client()
    server.stop()


@pytest.fixture
def make(client):
    made = []

    def make(client=client, leaves=LEAVES):
        made.append(weight_puller.Puller(client, "weights", leaves, PERIOD))
        return made[-1]

    yield make
    for puller in made:
        puller.close()


def push(client, step):
    values = [np.full([2, 2], step, np.float32), np.int64(step)]
    client.insert(values, {"weights": 1.0})


def transfers(client):
    info = client.server_info()["weights"].rate_limiter_info
    return info.sample_stats.completed


def wait_for(pullers, step):
    deadline = time.monotonic() + SECONDS
    for puller in pullers:
        while (newest := puller.newest()) is None or newest.arrays[1] != step:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        np.testing.assert_array_equal(newest.arrays[0], np.full([2, 2], step))
        assert [(a.shape, a.dtype) for a in newest.arrays] == SPECS


def test_a_version_is_transferred_once_for_all_pullers_of_a_host(
    client, make, host_relay
):
    pullers = [make() for _ in range(3)]
    assert [puller.newest() for puller in pullers] == [None] * 3
    for number, step in enumerate([10, 30, 20], 1):
        push(client, step)
        wait_for(pullers, step)
        assert transfers(client) == number
    late = make()
    assert late.newest().arrays[1] == 20  # At once.
    pullers[0].close()  # The leader.
    push(client, 40)
    wait_for([*pullers[1:], late], 40)
    assert transfers(client) == 4


def test_weights_that_are_not_finite_are_left_out_with_one_warning(
    client, make, caplog
):
    pullers = [make(), make()]
    push(client, 10)
    wait_for(pullers, 10)
    for bad in (np.nan, np.inf):
        before = transfers(client)
        client.insert([np.full([2, 2], bad, np.float32), np.int64(11)], {"weights": 1})
        deadline = time.monotonic() + SECONDS
        while transfers(client) == before:
            assert time.monotonic() < deadline
            time.sleep(0.001)
    assert [puller.newest().arrays[1] for puller in pullers] == [10, 10]
    push(client, 12)
    wait_for(pullers, 12)
    (record,) = caplog.records
    assert "are left out: 1 of 2 arrays hold NaN or infinity, such as kernel" in (
        record.getMessage()
    )


def test_a_weight_that_was_infinite_from_the_start_may_stay_so(client, make):
    unchecked = [LEAVES[0]._replace(is_checked=False), LEAVES[1]]
    client.insert([np.full([2, 2], np.inf, np.float32), np.int64(4)], {"weights": 1.0})
    assert make(leaves=unchecked).newest().arrays[1] == 4


def test_followers_wait_for_a_leader_that_does_not_listen_yet(
    client, make, host_relay, monkeypatch
):
    class SlowToListen(socket.socket):
        def listen(self):
            time.sleep(0.05)
            super().listen()

    monkeypatch.setattr(host_relay.socket, "socket", SlowToListen)
    push(client, 7)
    wait_for([make() for _ in range(3)], 7)
    assert transfers(client) == 1


def test_a_leader_frees_its_name_before_its_followers_notice(
    client, make, host_relay, monkeypatch
):
    class SlowToClose(socket.socket):
        def close(self):
            time.sleep(0.05)
            super().close()

    monkeypatch.setattr(host_relay.socket, "socket", SlowToClose)
    push(client, 7)
    leader, *followers = pullers = [make() for _ in range(3)]
    wait_for(pullers, 7)
    leader.close()
    push(client, 8)
    wait_for(followers, 8)
    assert transfers(client) == 2


def test_pullers_work_without_a_relay(client, make, host_relay, monkeypatch):
    monkeypatch.setattr(weight_puller, "_HANDOVER", 0.01)
    monkeypatch.setattr(host_relay, "lead", lambda _: None)
    monkeypatch.setattr(host_relay, "follow", lambda _: None)
    push(client, 7)
    pullers = [make(), make()]
    assert [puller.newest().arrays[1] for puller in pullers] == [7, 7]
    push(client, 8)
    wait_for(pullers, 8)
    assert transfers(client) == 4


def test_a_puller_whose_leader_is_stopped_or_wrong_looks_itself(
    client, make, host_relay, monkeypatch
):
    monkeypatch.setattr(weight_puller, "_PATIENCE", 0.01)
    leader = host_relay.lead(f"{client.server_address} weights")
    push(client, 7)
    puller = make()
    assert puller.newest().arrays[1] == 7  # The leader serves nobody.
    leader.publish(100, [np.zeros(5)])
    leader.serve(0.1)
    push(client, 8)
    wait_for([puller], 8)
    leader.close()


class FailingClient:
    """A client that finds no server, while it is told so."""

    def __init__(self, client):
        self.server_address = client.server_address
        self.fails = True
        self.sample = client.sample
        self._client = client

    def server_info(self):
        if self.fails:
            raise replay_service.errors.ReplayUnavailable("gone")
        return self._client.server_info()


def test_the_error_of_a_server_is_raised_and_the_next_call_tries_again(client, make):
    push(client, 7)
    failing = FailingClient(client)
    puller = make(failing)
    with pytest.raises(replay_service.errors.ReplayUnavailable):
        puller.newest()
    failing.fails = False
    wait_for([puller], 7)
