"""Which addresses need a token."""

import logging
import os
import signal
import threading

import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl.replay_service import errors, item_selectors, rate_limiters
from tfrl.replay_service.sampling import generator
from tfrl.replay_service.sampling.sampler import SampleStream
from tfrl.replay_service.server import Server, Table
from tfrl.replay_service.trajectory_dataset import TrajectoryDataset
from tfrl.replay_service.transport import addresses


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"]
)
def test_this_host_alone_needs_none(host):
    addresses.check_exposure(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "replay.example.org"])
def test_other_hosts_need_one(host):
    addresses.check_exposure(host, "token")
    for token in (None, ""):
        with pytest.raises(ValueError, match="which other hosts can reach"):
            addresses.check_exposure(host, token)


def test_hosts_with_colons_get_brackets():
    assert addresses.join("localhost", 1) == "localhost:1"
    assert addresses.join("::1", 1) == addresses.join("[::1]", 1) == "[::1]:1"


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("localhost:1", ("localhost", 1)),
        ("10.0.0.7:65535", ("10.0.0.7", 65535)),
        ("[::1]:8000", ("::1", 8000)),
    ],
)
def test_addresses_have_a_host_and_a_port(address, parts):
    assert addresses.split(address) == parts
    assert addresses.join(*parts) == address


@pytest.mark.parametrize(
    "address", ["", "localhost", "localhost:", ":1", "h:x", "h:65536", "dns:///h:1x"]
)
def test_what_has_no_host_or_port_is_no_address(address):
    with pytest.raises(
        ValueError, match=r"server_address: got .*, expected 'host:port'"
    ):
        addresses.split(address)


DEATH = r"process had started, has died with exit code -9: it was killed by SIGKILL"


def insert(client):
    while True:
        client.insert(np.zeros(3), {"t": 1.0})


def write(client):
    writer = client.trajectory_writer(1)
    while True:
        writer.append(np.zeros(3))
        writer.create_item("t", 1.0, writer.history[-1:])
        writer.flush()


def draw(client):
    while True:
        list(client.sample("t"))


def wait_for_a_sample(client):
    stream = SampleStream(client.server_address, "empty")
    while stream.next_batch(1, timeout=0.05) is None:
        pass


def ask(client):
    while True:
        client.server_info()


def open_another(client):
    while True:
        client.trajectory_writer(1).close()


def kill(server):
    os.kill(server._process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "use",
    some_slow(
        [insert, write, draw, wait_for_a_sample, ask, open_another],
        fast=[write, wait_for_a_sample],
    ),
)
def test_a_dead_server_is_told_with_its_exit_code(use, caplog):
    fifo = item_selectors.Fifo()
    table = Table("t", fifo, fifo, 1000, rate_limiters.MinSize(1))
    server = Server([Table.queue("empty", 10), table])
    client = server.localhost_client()
    client.insert(np.zeros(3), {"t": 1.0})
    timer = threading.Timer(0.3, kill, [server])
    timer.start()
    # With a timeout of 30 s, this is not what a client says when time is up.
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(errors.ReplayUnavailable, match=DEATH) as raised,
    ):
        use(client)
    timer.join()
    assert f"port {server.port} (process {server._process.pid})" in str(raised.value)
    assert "Start the server" not in str(raised.value)
    assert "trying to reach it" not in caplog.text
    server.stop()


def test_a_dataset_tells_it_in_one_error():
    server = Server([Table.queue("empty", 10)])
    address = f"localhost:{server.port}"
    dataset = TrajectoryDataset(address, "empty", tf.int64, tf.TensorShape([1]), 1)
    timer = threading.Timer(0.5, kill, [server])
    timer.start()
    with pytest.raises(tf.errors.UnknownError, match=DEATH) as raised:
        next(iter(dataset))
    timer.join()
    assert str(raised.value).count("Traceback") == 1
    assert isinstance(generator.failures[address], errors.ReplayUnavailable)
    server.stop()


@pytest.mark.slow
def test_a_writer_goes_on_with_another_server_at_the_port():
    server = Server([Table.queue("t", 100)])
    client = server.localhost_client()
    writer = client.trajectory_writer(1)
    writer.append(np.array(7))
    kill(server)
    writer.create_item("t", 1.0, writer.history[-1:])
    with pytest.raises(errors.ReplayUnavailable, match=DEATH):
        writer.flush()
    other = Server([Table.queue("t", 100)], port=server.port)
    writer.flush()
    [item] = client.sample("t", emit_timesteps=False)
    assert item.data[0].tolist() == [7]
    server.stop()
    assert addresses.death_of(f"localhost:{other.port}") is None
    kill(other)
    with pytest.raises(errors.ReplayUnavailable, match=DEATH):
        client.server_info()
    other.stop()
    assert addresses.death_of(f"localhost:{other.port}") is None


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_servers_of_other_hosts_and_processes_are_not_our_own():
    def death(wait):
        return f"died in {wait} s"

    addresses.add_own_server(7, death)
    assert addresses.death_of("127.0.0.1:7", wait=0.5) == "died in 0.5 s"
    for address in ("example.org:7", "localhost:8", "unix:///7"):
        assert addresses.death_of(address) is None
    if hasattr(os, "fork"):
        child = os.fork()
        if not child:
            os._exit(addresses.death_of("localhost:7") is not None)
        assert os.waitpid(child, 0)[1] == 0
    addresses.remove_own_server(7, print)
    assert addresses.death_of("localhost:7") is not None
    addresses.remove_own_server(7, death)
    assert addresses.death_of("localhost:7") is None
