"""Streams of samples: their items, how far ahead they draw, and how they end."""

import threading

import numpy as np
import pytest

from tfrl.replay_service import errors, item_selectors, rate_limiters
from tfrl.replay_service.sampling.sampler import Exhausted, SampleStream
from tfrl.replay_service.table import Table
from tfrl.replay_service.transport import arena_view
from tfrl.specs import spec_json
from tfrl.specs.array_spec import ArraySpec

KEY, PROBABILITY, SIZE, PRIORITY, TIMES = range(5)


def make_table(name, sampler=None, signature=None, **options):
    return Table(
        name=name,
        sampler=sampler or item_selectors.Fifo(),
        remover=item_selectors.Fifo(),
        max_size=1000,
        rate_limiter=rate_limiters.MinSize(1),
        signature=signature,
        **options,
    )


@pytest.fixture(scope="module")
def server(start_server):
    queues = ("queue", "gaps", "short", "taken", "lent", "late", "closed", "reused")
    return start_server(
        [
            Table.queue("shapes", 1000),
            make_table("pairs"),
            make_table("lengths"),
            make_table("squeezed"),
            make_table("empty"),
            make_table("uniform", item_selectors.Uniform()),
            make_table("signed", signature=[ArraySpec((2, 3), "float32", "x")]),
            *(Table.queue(name, 100) for name in queues),
        ]
    )


@pytest.fixture(scope="module")
def client(server):
    client = server.localhost_client()
    with client.trajectory_writer(num_keep_alive_refs=4) as writer:
        for i in range(9):
            writer.append({"x": np.full(3, i, np.float32), "y": np.int64(10 * i)})
            x, y = writer.history["x"], writer.history["y"]
            if i >= 1:
                for table in ("pairs", "uniform"):
                    writer.create_item(table, i, {"x": x[-2:], "y": y[-2:]})
                writer.create_item("squeezed", 1, {"x": x[-2:], "y": y[-1]})
                writer.create_item("signed", 1, [x[-2:]])
            if i in (0, 1, 3):
                writer.create_item("lengths", 1, [x[-1 - (i == 3) :]])
    return client


@pytest.fixture(params=[True, False], ids=["shared", "sent"])
def open_stream(server, client, request):
    streams = []

    def open_stream(table, **options):
        stream = SampleStream(f"localhost:{server.port}", table, **options)
        stream._connector.shared = request.param
        streams.append(stream)
        return stream

    yield open_stream
    for stream in streams:
        stream.close()


def fill(client, table, values):
    for value in values:
        client.insert([np.int64(value)], {table: 1.0})


def wait_for_batch(stream):
    while (batch := stream.next_batch(1, timeout=0.05)) is None:
        pass
    return batch


def completed(client, table):
    return client.server_info()[table].rate_limiter_info.sample_stats.completed


def test_batches_hold_the_items_in_the_order_of_their_draws(open_stream):
    stream = open_stream("pairs", max_in_flight=5)
    batch = stream.next_batch(3)
    first = batch[5:]
    np.testing.assert_array_equal(first[1], [[0, 10]] * 3)  # Fifo draws the oldest.
    np.testing.assert_array_equal(
        first[0], np.tile([[[0.0] * 3, [1.0] * 3]], (3, 1, 1))
    )
    np.testing.assert_array_equal(batch[SIZE], [8, 8, 8])
    np.testing.assert_array_equal(batch[PRIORITY], [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(np.diff(batch[TIMES]), [1, 1])
    assert [a.dtype.name for a in batch] == [
        *("uint64", "float64", "int64", "float64", "int32"),
        *("float32", "int64"),
    ]


def test_items_of_hundreds_of_shapes_are_in_a_table_together(client, open_stream):
    sizes = range(300)
    for size in sizes:
        client.insert(np.full(size, size, np.int32), {"shapes": 1.0})
    assert client.server_info()["shapes"].current_size == len(sizes)
    stream = open_stream("shapes", max_in_flight=40)
    for size in sizes:
        batch = stream.next_batch(1)
        np.testing.assert_array_equal(batch[5], np.full((1, 1, size), size))


def test_rows_of_all_columns_belong_to_one_item(open_stream):
    stream = open_stream("uniform", max_in_flight=7)
    info, (x, y) = (b := stream.next_batch(200))[:5], b[5:]
    np.testing.assert_array_equal(10 * x[:, :, 0], y)
    np.testing.assert_array_equal(y[:, 1] - y[:, 0], np.full(200, 10))
    np.testing.assert_array_equal(info[PROBABILITY], np.full(200, 1 / 8))
    np.testing.assert_array_equal(info[PRIORITY], y[:, 1] / 10)
    assert len(np.unique(info[KEY])) == 8


def test_the_last_batch_is_smaller(open_stream):
    stream = open_stream("pairs", max_in_flight=3, max_samples=8)
    assert [len(stream.next_batch(5)[0]) for _ in range(2)] == [5, 3]
    for _ in range(2):
        with pytest.raises(Exhausted):
            stream.next_batch(5)


def test_max_samples_of_the_server_are_drawn_and_no_more(open_stream, client):
    before = completed(client, "pairs")
    stream = open_stream("pairs", max_in_flight=64, max_samples=10)
    assert len(stream.next_batch(10)[0]) == 10
    assert completed(client, "pairs") == before + 10


@pytest.mark.parametrize(("asked", "per_request"), [(4, -1), (4, 2), (9, 1)])
def test_no_more_are_drawn_ahead_than_allowed(open_stream, client, asked, per_request):
    before = completed(client, "uniform")
    stream = open_stream("uniform", max_in_flight=6, max_samples_per_stream=per_request)
    for i in range(1, 4):
        stream.next_batch(asked)
        assert completed(client, "uniform") <= before + asked * i + 6


def test_what_is_handed_out_row_by_row_counts_as_drawn_ahead(open_stream, client):
    client.reset("lent")
    fill(client, "lent", range(6))
    stream = open_stream("lent", max_in_flight=2)
    for i in range(3):
        rows = stream.next_rows(5)
        assert rows[5].tolist() == [[i]]
        assert completed(client, "lent") <= i + 2


def test_items_come_with_numbers_of_python(open_stream):
    ((info, data), *_) = open_stream("pairs").next_items(1)
    assert type(info.key) is int
    assert type(info.probability) is float
    assert (info.probability, info.table_size, info.priority) == (1.0, 8, 1.0)
    assert [a.shape for a in data] == [(2, 3), (2,)]


def test_single_steps_have_no_time_dimension(open_stream):
    x, y = open_stream("squeezed", max_samples=1).next_batch(1)[5:]
    assert (x.shape, y.shape) == ((1, 2, 3), (1,))
    assert y.tolist() == [10]


def test_time_steps_follow_one_another_across_batches(open_stream):
    stream = open_stream("pairs", timesteps=True, max_samples=3)
    batches = [stream.next_batch(4), stream.next_batch(4)]
    assert [b[6].tolist() for b in batches] == [[0, 10, 0, 10], [0, 10]]
    times = np.concatenate([b[TIMES] for b in batches])
    np.testing.assert_array_equal(times - times[0], [0, 0, 1, 1, 2, 2])


def test_items_with_columns_of_different_lengths_have_no_time_steps(open_stream):
    with pytest.raises(ValueError, match="cannot be decomposed into timesteps"):
        open_stream("squeezed", timesteps=True).next_batch(1)


def test_items_of_different_lengths_come_apart_and_make_no_batch(server, client):
    client.reset("gaps")
    with client.trajectory_writer(2) as writer:
        for i in range(4):
            writer.append([np.float32(i)])
            length = 2 if i == 3 else 1
            writer.create_item("gaps", 1.0, [writer.history[0][-length:]])
    address = f"localhost:{server.port}"
    stream = SampleStream(address, "gaps", max_in_flight=8, max_samples=4)
    shapes = [stream.next_rows(8)[5].shape for _ in range(2)]
    assert shapes[-1] == (1, 2)
    stream.close()
    client.reset("gaps")
    with client.trajectory_writer(2) as writer:
        for i in range(2):
            writer.append([np.float32(i)])
            writer.create_item("gaps", 1.0, [writer.history[0][-1 - i :]])
    stream = SampleStream(address, "gaps", max_in_flight=8)
    with pytest.raises(
        ValueError,
        match=r"Cannot batch tensors with different shapes in component 5. First "
        r"element had shape \[1\] and element 1 had shape \[2\].",
    ):
        stream.next_batch(2)
    stream.close()


@pytest.mark.parametrize("timeout_ms", [0, 30])
def test_a_timeout_ends_the_stream_after_what_is_there(open_stream, client, timeout_ms):
    client.reset("short")
    fill(client, "short", range(3))
    stream = open_stream("short", max_in_flight=8, timeout_ms=timeout_ms)
    assert stream.next_batch(8)[5].tolist() == [[0], [1], [2]]
    with pytest.raises(Exhausted):
        stream.next_batch(8)


def test_a_stream_that_timed_out_draws_nothing_more(open_stream, client):
    client.reset("taken")
    stream = open_stream("taken", max_in_flight=8, timeout_ms=10)
    with pytest.raises(Exhausted):
        stream.next_batch(1)
    fill(client, "taken", [7])
    assert [s.data for s in client.sample("taken", emit_timesteps=False)] == [[[7]]]


def test_an_unfinished_batch_is_kept(open_stream, client):
    client.reset("late")
    fill(client, "late", [1, 2])
    stream = open_stream("late", max_in_flight=4)
    assert stream.next_batch(3, timeout=0.2) is None
    fill(client, "late", [3])
    assert stream.next_batch(3)[5].tolist() == [[1], [2], [3]]


def test_waiting_ends_when_another_thread_closes_the_stream(open_stream):
    stream = open_stream("empty")
    timer = threading.Timer(0.1, stream.close)
    timer.start()
    with pytest.raises(Exhausted):
        wait_for_batch(stream)


def test_specs_are_checked_against_the_signature(open_stream):
    for dtype, shape in (("float64", (2, 3)), ("float32", (2, None, 1))):
        stream = open_stream("signed", specs=[spec_json.Leaf(shape, dtype)])
        with pytest.raises(
            ValueError,
            match=r"^Requested incompatible tensor at flattened index 0 from table "
            r"'signed'.  Requested \(dtype, shape\): \((double, \[2,3\]|float, "
            r"\[2,\?,1\])\).  Signature \(dtype, shape\): \(float, \[2,3\]\).  Table "
            r"signature: 0: Tensor<name: 'x', dtype: float, shape: \[2,3\]>$",
        ):
            stream.next_batch(1)
    stream = open_stream("signed", specs=[])
    with pytest.raises(ValueError, match="Requested 0 tensors, but table signature"):
        stream.next_batch(1)
    stream = open_stream("signed", specs=[spec_json.Leaf((None, 3), "float32")])
    assert len(stream.next_batch(2)[0]) == 2


def test_specs_are_checked_against_samples(open_stream):
    leaf = spec_json.Leaf((2, 3), "float32")
    stream = open_stream("pairs", specs=[leaf, leaf])
    with pytest.raises(
        ValueError,
        match=r"^Received incompatible tensor at flattened index 1 from table "
        r"'pairs'.  Specification has \(dtype, shape\): \(float, \[2,3\]\).  Tensor "
        r"has \(dtype, shape\): \(int64, \[2\]\).\n",
    ):
        stream.next_batch(1)
    with pytest.raises(ValueError, match="Specification has 1 tensors, but data"):
        open_stream("pairs", specs=[leaf]).next_batch(1)


def test_an_unknown_table_is_named(open_stream):
    with pytest.raises(RuntimeError, match="Priority table nope was not found; the"):
        open_stream("nope").next_batch(1)


def test_a_session_goes_on_in_another_stream(open_stream):
    stream = open_stream("pairs", max_samples=2)
    stream.next_batch(2)
    session = stream.detach()
    assert session is not None
    other = open_stream("squeezed", max_samples=1, session=session)
    assert other.next_batch(1)[6].tolist() == [10]
    assert other.detach() is session
    again = open_stream("squeezed", max_in_flight=3, session=session)
    assert again.next_batch(1)[6].tolist() == [10]
    assert again.detach() is None  # Samples are on their way.


def test_a_lost_session_is_replaced(open_stream):
    stream = open_stream("pairs", max_samples=2)
    stream.next_batch(2)
    session = stream.detach()
    session.connection.close()
    other = open_stream("pairs", max_samples=1, session=session)
    assert other.next_batch(1)[6].tolist() == [[0, 10]]


def test_memory_that_cannot_be_mapped_is_done_without(
    server, client, monkeypatch, caplog
):
    def refuse(*args):
        raise PermissionError("no")

    monkeypatch.setattr(arena_view, "attach", refuse)
    stream = SampleStream(f"localhost:{server.port}", "pairs", max_in_flight=4)
    assert len(stream.next_batch(9)[0]) == 9
    assert not stream._session.shared
    assert "are sent in messages instead" in caplog.text
    stream.close()


def test_where_nothing_listens_the_stream_says_so():
    stream = SampleStream("localhost:1", "table", timeout=0.1)
    with pytest.raises(errors.ReplayUnavailable, match="localhost:1"):
        stream.next_batch(1)
    stream = SampleStream("localhost:1", "table", timeout=0.1)
    with pytest.raises(errors.ReplayUnavailable, match="localhost:1"):
        wait_for_batch(stream)


@pytest.mark.slow
def test_streams_go_on_with_a_server_that_comes_back(start_server):
    server = start_server([Table.queue("queue", 10)])
    port = server.port
    client = server.localhost_client()
    fill(client, "queue", [1])
    stream = SampleStream(f"localhost:{port}", "queue", max_in_flight=4, timeout=20.0)
    assert stream.next_batch(2, timeout=0.1) is None
    server.stop()
    assert stream.next_batch(2, timeout=0.1) is None
    start_server([Table.queue("queue", 10)], port=port)
    fill(client, "queue", [2])
    assert stream.next_batch(2)[5].tolist() == [[1], [2]]
    stream.close()


@pytest.mark.slow
def test_a_server_that_stays_away_ends_the_stream(start_server):
    server = start_server([Table.queue("queue", 10)])
    stream = SampleStream(f"localhost:{server.port}", "queue", timeout=0.2)
    assert stream.next_batch(1, timeout=0.1) is None
    server.stop()
    with pytest.raises(errors.ReplayUnavailable, match="No replay server answered"):
        wait_for_batch(stream)
