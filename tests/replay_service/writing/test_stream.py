"""Items reach a server once each, in time, and no sooner than a limiter allows."""

import contextlib
import gc
import os
import pathlib
import random
import socket
import threading
import time
import traceback

import numpy as np
import pytest

from tfrl.replay_service import errors, trajectory_writer
from tfrl.replay_service.client import Client
from tfrl.replay_service.server import Server, Table
from tfrl.replay_service.transport import connection, wire
from tfrl.replay_service.writing import stream as writer_stream


def test_what_only_the_server_refuses_is_raised_by_a_later_call(client, drain):
    writer = client.trajectory_writer(3, validate_items=False)
    for i in range(3):
        writer.append({"b": i})
    writer.create_item("pair", 1.0, [writer.history["b"][-1:]])
    with pytest.raises(ValueError, match="inconsistent with the table signature"):
        writer.flush()
    writer.create_item("any", 1.0, [writer.history["b"][-2:]])
    writer.create_item("nope", 1.0, [writer.history["b"][-1:]])
    writer.create_item("any", 1.0, [writer.history["b"][-1:]])
    deadline = time.monotonic() + 10
    while writer._stream.problem is None and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(ValueError, match="table could not be found"):
        writer.append({"b": 3})
    writer.append({"b": 3})
    writer.flush()
    assert drain(client) == [[[1, 2]], [[2]]]


def test_flush_waits_for_the_limiter_up_to_its_timeout(client, filled):
    writer = filled(client)
    for _ in range(4):
        writer.create_item("queue", 1.0, [writer.history["b"][-1]])
    writer.flush(2)
    writer.flush(3, timeout_ms=1)
    with pytest.raises(
        errors.DeadlineExceededError,
        match=r"Flush call did not complete within provided timeout of 0:00:00.100000$",
    ):
        writer.flush(timeout_ms=100)
    with pytest.raises(
        errors.DeadlineExceededError, match="End episode call did not complete within"
    ):
        writer.end_episode(timeout_ms=20)
    assert writer.episode_steps == 0
    assert len(writer.history["b"]) == 0
    with pytest.raises(ValueError, match="block_until_num_items must be >= 0, got -1"):
        writer.flush(-1)
    assert [s.data for s in client.sample("queue", 4, emit_timesteps=False)] == [
        [4]
    ] * 4
    writer.flush()


def test_items_go_out_by_themselves_after_a_while(client, filled):
    writer = filled(client)
    writer.create_item("any", 1.0, [writer.history["b"][-1]])
    samples = client.sample("any", emit_timesteps=False)
    assert next(samples).data == [4]


def test_with_flushes_unless_the_service_failed(client, drain):
    def fail(writer, table, error):
        with writer:
            writer.append([1])
            writer.create_item(table, 1.0, [writer.history[0][-1]])
            raise error

    with pytest.raises(KeyError):
        fail(client.trajectory_writer(2), "any", KeyError("x"))
    assert drain(client) == [[1]]
    for _ in range(2):
        client.insert(1, {"queue": 1.0})  # And then it is full.
    with pytest.raises(errors.ReverbError, match="broken"):
        fail(client.trajectory_writer(2), "queue", errors.ReverbError("broken"))


def test_closed_writers_cannot_be_used(client, drain, filled):
    writer = filled(client)
    writer.create_item("any", 1.0, [writer.history["b"][-1]])
    item = [writer.history["b"][-1]]
    writer.close()
    writer.close()
    for use in (
        lambda: writer.append({"b": 1}),
        lambda: writer.create_item("any", 1.0, item),
        writer.flush,
        writer.end_episode,
    ):
        with pytest.raises(
            RuntimeError, match="TrajectoryWriter::Close has been called"
        ):
            use()
    assert drain(client) == [[4]]


def test_deleting_a_writer_does_not_wait_for_a_limiter(client, filled):
    writer = filled(client)
    for _ in range(5):
        writer.create_item("queue", 1.0, [writer.history["b"][-1]])
    started = time.monotonic()
    del writer
    gc.collect()
    assert time.monotonic() - started < 5


def test_the_collector_can_delete_a_writer_while_its_lock_is_held(
    client, drain, monkeypatch
):
    monkeypatch.setattr(trajectory_writer, "_CLOSING", 30.0)
    writer = client.trajectory_writer(1)
    writer.append([1])
    writer.create_item("any", 1.0, [writer.history[0][-1]])
    stream = writer._stream
    receive = stream._link.receive

    def collect_and_receive(timeout):
        gc.collect()
        return receive(timeout)

    monkeypatch.setattr(stream._link, "receive", collect_and_receive)
    writer.itself = writer  # So that only the collector deletes it.
    del writer
    ticking = threading.Thread(target=stream.tick, daemon=True)
    ticking.start()
    ticking.join(10)
    deadline = time.monotonic() + 10
    while not stream.is_closed and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stream.is_closed
    assert drain(client) == [[1]]


def _cut(writer):
    """Breaks a writer's connection."""
    writer._stream._link._stream._socket.shutdown(socket.SHUT_RDWR)


def test_items_go_in_once_when_connections_break(client, drain):
    writer = client.trajectory_writer(3)
    count = 400
    for i in range(count):
        writer.append({"x": i})
        writer.create_item("any", 1.0, [writer.history["x"][-1]])
        if i % 90 == 70:
            with contextlib.suppress(OSError, AttributeError):  # Is being made anew.
                _cut(writer)
    writer.flush()
    assert drain(client) == [[i] for i in range(count)]


def test_items_that_wait_for_a_limiter_go_in_once_when_a_connection_breaks(client):
    writer = client.trajectory_writer(3)
    for i in range(100):
        writer.append({"x": i})
        writer.create_item("queue", 1.0, [writer.history["x"][-1]])
    with pytest.raises(errors.DeadlineExceededError):
        writer.flush(timeout_ms=50)
    _cut(writer)
    with pytest.raises(errors.DeadlineExceededError):
        writer.flush(timeout_ms=200)
    samples = client.sample("queue", 100, emit_timesteps=False)
    assert [int(sample.data[0]) for sample in samples] == list(range(100))
    writer.flush()
    assert client.server_info()["queue"].current_size == 0


def test_steps_that_items_to_come_share_with_repeated_ones_are_kept(
    client, monkeypatch
):
    monkeypatch.setattr(writer_stream, "_DELAY", 1000.0)
    writer = client.trajectory_writer(2)
    for i in range(writer_stream.BATCH):  # Sent, and held back by the limiter.
        writer.append([i])
        writer.create_item("queue", 1.0, [writer.history[0][-1]])
    writer.create_item("queue", 1.0, [writer.history[0][-1]])  # Not sent.
    for i in range(5):
        writer.append([-i])
    link = writer._stream._link
    _cut(writer)
    deadline = time.monotonic() + 10
    while writer._stream._link in (None, link) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert writer._stream._link not in (None, link)
    assert writer._stream.count == 1
    samples = client.sample("queue", writer_stream.BATCH, emit_timesteps=False)
    assert len(list(samples)) == writer_stream.BATCH
    writer.flush()
    (sample,) = client.sample("queue", emit_timesteps=False)
    assert sample.data == [writer_stream.BATCH - 1]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_written_arrives_once_and_in_order(client, seed, drain):
    rng = random.Random(seed)
    writer = client.trajectory_writer(4)
    steps, expected = [], []
    for i in range(300):
        step = {"x": i, "y": [i, i], "z": None if rng.random() < 0.3 else float(i)}
        if rng.random() < 0.2:
            writer.append({"x": i}, partial_step=True)
            writer.create_item("any", 1.0, [writer.history["x"][-1]])
            expected.append([i])
            step = {name: step[name] for name in "yz"}
        writer.append({**step, "y": np.array([i, i])})
        steps.append({**step, "x": i})
        for _ in range(rng.randrange(3)):
            back = rng.choices(range(1, min(len(steps), 4) + 1), k=rng.randrange(1, 4))
            name = rng.choice("xyz")
            values = [steps[-k][name] for k in back]
            if None not in values:
                column = writer.history[name][[-k for k in back]]
                writer.create_item("any", 1.0, [column])
                expected.append([values])
        event = rng.random()
        if event < 0.02:
            writer.flush(rng.randrange(10))
        elif event < 0.04:
            writer.end_episode(clear_buffers=event < 0.03)
            steps = [] if event < 0.03 else steps
        elif event < 0.06:
            with contextlib.suppress(OSError, AttributeError):
                _cut(writer)
        elif event < 0.07:
            time.sleep(0.06)
    writer.flush()
    assert drain(client) == expected


def test_what_was_written_without_a_connection_goes_out_in_many_messages(client, drain):
    writer = client.trajectory_writer(1)
    stream = writer._stream
    link, stream._link = stream._link, None
    stream._thread = threading.current_thread()  # As if it tried to connect.
    for i in range(1000):
        writer.append([i, np.zeros(1000)])
        writer.create_item("any", 1.0, [writer.history[0][-1]])
        if i % 150 == 0:
            writer.create_item("any", 1.0, [writer.history[0][-1:]])
    stream._link, stream._thread = link, None
    writer.flush()
    items = drain(client)
    assert [item[0] for item in items if isinstance(item[0], int)] == list(range(1000))
    assert len(items) == 1007


def test_a_server_that_is_gone_is_named():
    server = Server([Table.queue("t", 100_000)])
    client = Client(f"localhost:{server.port}", timeout=0.2)
    writer = client.trajectory_writer(2)
    writer.append([1])
    server.stop()
    writer.create_item("t", 1.0, [writer.history[0][-1]])
    with pytest.raises(errors.ReplayUnavailable, match=f"'localhost:{server.port}'"):
        writer.flush()
    with pytest.raises(errors.ReplayUnavailable, match="No replay server answered at"):
        client.trajectory_writer(2)


# Forking a process with threads is what is tested; Python 3.12 and later warn of it.
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_writes_on_its_own(client, drain, filled):
    writer = filled(client)
    writer.create_item("any", 1.0, [writer.history["b"][-1]])
    child = os.fork()
    if not child:
        try:
            writer.append({"a": np.zeros(3, np.float32), "b": 7})
            writer.create_item("any", 1.0, [writer.history["b"][-2:]])
            writer.flush(timeout_ms=10_000)
            client.server_info(10)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    writer.flush()
    assert sorted(drain(client), key=str) == [[4], [[4, 7]]]


def test_one_thread_serves_all_writers(client, filled):
    writers = [filled(client) for _ in range(5)]
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("tfrl-replay-writers") == 1
    del writers


@pytest.fixture(params=["tcp", "tls"])
def remote_client(request, server, start_server, monkeypatch):
    """A client of empty tables whose host has no Unix sockets."""
    monkeypatch.delattr(socket, "AF_UNIX")
    monkeypatch.setattr(connection, "_local_servers", {})
    if request.param == "tcp":
        client = server.localhost_client()
    else:
        data = pathlib.Path(__file__).parents[1] / "data"
        pair = tuple(
            (data / name).read_bytes() for name in ("certificate.pem", "key.pem")
        )
        client = start_server(server._tables, tls=pair).localhost_client()
    for name in ("any", "queue"):
        client.reset(name)
    return client


def test_items_go_in_once_from_other_hosts_too(remote_client, drain):
    writer = remote_client.trajectory_writer(3)
    for i in range(300):
        writer.append({"x": i, "y": np.zeros((50, 100), np.uint8)})
        writer.create_item("any", 1.0, [writer.history["x"][-1]])
        if i == 150:
            writer._stream._link._stream._socket.shutdown(socket.SHUT_RDWR)
    writer.flush()
    assert drain(remote_client) == [[i] for i in range(300)]
    writer.create_item("queue", 1.0, [writer.history["x"][-3:]] * 2)
    writer.end_episode()
    samples = remote_client.sample("queue", emit_timesteps=False)
    assert [s.data[1].tolist() for s in samples] == [[297, 298, 299]]
    writer.close()


def test_memory_of_steps_is_freed_when_they_are_confirmed(client):
    writer = client.trajectory_writer(2)
    for i in range(3000):
        writer.append((np.zeros(1000, np.uint8), i))
        if i % 10 == 0:
            writer.create_item("any", 1.0, [leaf[-1] for leaf in writer.history])
        if i % 100 == 0:
            writer.flush()
    assert len(writer._buffers._blocks) <= 2


@pytest.fixture
def short_messages(monkeypatch):
    """Limits the messages of this process to 10 kB, and of steps to 2 kB."""
    monkeypatch.setattr(writer_stream, "_MESSAGE_BYTES", 2_000)
    monkeypatch.setattr(wire, "MAX_FRAME", 10_000)


def values(count, start=0):
    return [[i] * 100 for i in range(start, start + count)]


def append(writer, count, start=0):
    for value in values(count, start):
        writer.append({"x": np.array(value, np.int32)})


def test_an_item_can_be_larger_than_a_message(client, drain, short_messages):
    with client.trajectory_writer(60) as writer:
        append(writer, 60)
        writer.create_item("any", 1.0, [writer.history["x"][-60:]])
        writer.create_item("any", 1.0, [writer.history["x"][-60::20]])
        append(writer, 30, 60)
        writer.create_item("any", 1.0, [writer.history["x"][-60:]])
    assert drain(client) == [
        [values(60)],
        [[[i] * 100 for i in (0, 20, 40)]],
        [values(60, 30)],
    ]


@pytest.mark.parametrize("broken", [0, 1, 4, 9])
def test_an_item_of_many_messages_is_sent_again_whole(
    client, drain, short_messages, monkeypatch, broken
):
    writer = client.trajectory_writer(60)
    append(writer, 60)
    sent = []
    send = connection.Connection.send

    def break_once(self, *message):
        sent.append(message)
        if len(sent) == broken + 1:
            self.close()
            raise errors.ConnectionLost("broken by the test")
        send(self, *message)

    monkeypatch.setattr(connection.Connection, "send", break_once)
    writer.create_item("any", 1.0, [writer.history["x"][-60:]])
    writer.flush()
    assert len(sent) > broken + 10
    assert drain(client) == [[values(60)]]
    writer.close()


def test_a_step_that_is_larger_than_a_message_is_refused(client, short_messages):
    writer = client.trajectory_writer(1)
    writer.append({"x": np.zeros(3_000, np.int32)})
    writer.create_item("any", 1.0, [writer.history["x"][-1:]])
    with pytest.raises(
        errors.ResourceExhaustedError,
        match=r"expected at most 10000. A step is sent in one message: divide",
    ):
        writer.flush()
    writer.append({"x": np.zeros(3_000, np.int32)})
    writer.close()


@pytest.mark.parametrize("kind", [errors.ResourceExhaustedError, errors.ProtocolError])
def test_items_that_the_transport_refuses_are_not_sent_again(client, monkeypatch, kind):
    writer = client.trajectory_writer(1)
    writer.append({"x": 1})
    sent = []
    send = connection.Connection.send

    def count(self, *message):
        sent.append(message)
        send(self, *message)

    def refuse(self, timeout):
        raise kind("refused a message")

    monkeypatch.setattr(connection.Connection, "send", count)
    with monkeypatch.context() as context:
        context.setattr(connection.Connection, "receive", refuse)
        writer.create_item("any", 1.0, [writer.history["x"][-1:]])
        with pytest.raises(kind, match="refused a message"):
            writer.flush()
    writer.flush()
    assert len(sent) == 1
    writer.create_item("any", 1.0, [writer.history["x"][-1:]])
    writer.flush()
    writer.close()


def fail_once(monkeypatch, link, error):
    """Makes the next message of a connection fail."""
    send = link.send

    def fail(*_):
        monkeypatch.setattr(link, "send", send)
        raise error

    monkeypatch.setattr(link, "send", fail)


def wait_until(is_reached):
    deadline = time.monotonic() + 10
    while not is_reached() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_reached()


@pytest.mark.parametrize(
    "error", [MemoryError("full"), errors.ResourceExhaustedError("full")]
)
def test_what_fails_in_the_background_fails_its_own_writer_alone(
    client, drain, filled, monkeypatch, error
):
    failing, healthy = filled(client), filled(client)
    fail_once(monkeypatch, failing._stream._link, error)
    failing.create_item("any", 1.0, [failing.history["b"][-1]])
    wait_until(lambda: failing._stream.problem is not None)
    healthy.create_item("any", 1.0, [healthy.history["b"][-2]])
    wait_until(lambda: client.server_info()["any"].current_size == 1)
    with pytest.raises(type(error), match="full"):
        failing.flush(timeout_ms=10_000)
    # The server has not seen the steps and their schema.
    failing.create_item("any", 1.0, [failing.history["b"][-3]])
    failing.flush(timeout_ms=10_000)
    assert drain(client) == [[3], [2]]


def test_an_answer_that_cannot_be_read_fails_its_own_writer_alone(
    client, drain, filled, monkeypatch
):
    failing, healthy = filled(client), filled(client)

    def fail(_):
        raise MemoryError("full")

    monkeypatch.setattr(failing._stream._link, "receive", fail)
    failing.create_item("any", 1.0, [failing.history["b"][-1]])
    wait_until(lambda: failing._stream.problem is not None)
    with pytest.raises(MemoryError, match="full"):
        failing.append({"b": 1})
    failing.flush(timeout_ms=10_000)  # Over another connection.
    healthy.create_item("any", 1.0, [healthy.history["b"][-2]])
    wait_until(lambda: client.server_info()["any"].current_size == 2)
    assert drain(client) == [[4], [3]]


def test_items_before_and_after_one_that_fails_arrive(client, monkeypatch):
    writer = client.trajectory_writer(1)
    stream = writer._stream

    def create(count, start):
        for i in range(start, start + count):
            writer.append([i])
            writer.create_item("queue", 1.0, [writer.history[0][-1]])

    create(writer_stream.BATCH, 0)  # All but two are held back by the limiter.
    create(writer_stream.BATCH - 1, 1000)
    fail_once(monkeypatch, stream._link, errors.ResourceExhaustedError("full"))
    create(1, 2000)
    with pytest.raises(errors.ResourceExhaustedError, match="full"):
        create(1, 3000)
    create(3, 3000)
    with pytest.raises(errors.DeadlineExceededError):
        writer.flush(timeout_ms=50)
    assert stream.outstanding == writer_stream.BATCH + 3 - 2
    count = writer_stream.BATCH + 3
    samples = list(client.sample("queue", count, emit_timesteps=False))
    expected = [*range(writer_stream.BATCH), 3000, 3001, 3002]
    assert [int(sample.data[0]) for sample in samples] == expected
    writer.flush(timeout_ms=10_000)
    assert stream.outstanding == 0


def test_a_thread_that_cannot_start_is_an_error_and_no_item_is_lost(
    client, drain, filled, monkeypatch
):
    writer = filled(client)

    def fail(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as context:
        context.setattr(threading.Thread, "start", fail)
        # Otherwise the thread of all writers may see the cut first, and `create_item`
        # raises the error.
        context.setattr(writer._stream, "_tick", lambda: False)
        _cut(writer)
        writer.create_item("any", 1.0, [writer.history["b"][-1]])
        for _ in range(2):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                writer.flush(timeout_ms=10_000)
    writer.flush(timeout_ms=10_000)
    assert drain(client) == [[4]]


def test_flush_waits_for_other_threads_up_to_its_timeout(client, filled):
    writer = filled(client)
    with (
        writer._stream.lock,
        pytest.raises(errors.DeadlineExceededError, match=r"of 0:00:00\.050000"),
    ):
        writer.flush(timeout_ms=50)
    with (
        writer._stream.lock,
        pytest.raises(errors.DeadlineExceededError, match=r"of 0:00:00\.050000"),
    ):
        writer.end_episode(timeout_ms=50)
    assert writer.episode_steps == 0


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_leaves_have_as_many_dimensions_as_batches_of_items_allow(
    client, monkeypatch, transport
):
    monkeypatch.setenv("TFRL_REPLAY_TRANSPORT", transport)
    client = Client(client.server_address)
    writer = client.trajectory_writer(2)
    with pytest.raises(
        ValueError, match=r"got a leaf of rank 31 at \('x',\), expected at most 30"
    ):
        writer.append({"x": np.zeros([1] * 31)})
    writer.append({"x": np.zeros([1] * 30)})
    writer.create_item("any", 1.0, [writer.history["x"][-1:]])
    writer.flush(timeout_ms=10_000)
    (sample,) = client.sample("any", emit_timesteps=False)
    assert sample.data[0].shape == (1,) * 31
