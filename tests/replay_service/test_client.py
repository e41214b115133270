"""Clients and the old writer behave on a real server as Reverb's do."""

import logging
import pickle
import threading
import time

import numpy as np
import pytest
import tree

from tfrl import specs
from tfrl.replay_service import errors, item_selectors, rate_limiters
from tfrl.replay_service.client import Client
from tfrl.replay_service.replay_sample import ReplaySample
from tfrl.replay_service.server import Server, Table
from tfrl.replay_service.trajectory_writer import TrajectoryWriter

STEP = {
    "a": specs.ArraySpec((3,), np.float32),
    "b": specs.ArraySpec((), np.int64),
}
PAIR = {
    "a": specs.ArraySpec((2, 3), np.float32),
    "b": specs.ArraySpec((2,), np.int64),
}


def _table(name, limiter=None, sampler=None, **kwargs):
    return Table(
        name,
        sampler=sampler or item_selectors.Fifo(),
        remover=item_selectors.Fifo(),
        max_size=1000,
        rate_limiter=limiter or rate_limiters.MinSize(1),
        **kwargs,
    )


@pytest.fixture(scope="module")
def server():
    server = Server(
        [
            _table("any"),
            _table("heap", sampler=item_selectors.MaxHeap()),
            _table("pair", signature=PAIR),
            _table("step", signature=STEP),
            Table.queue("queue", 2),
        ]
    )
    yield server
    server.stop()


@pytest.fixture
def client(server):
    client = server.localhost_client()
    for name in ("any", "heap", "pair", "step", "queue"):
        client.reset(name)
    return client


def _data(sample):
    return [column.tolist() for column in sample.data]


def _write_pairs(client, table, count=1):
    with client.trajectory_writer(2) as writer:
        for i in range(count + 1):
            writer.append({"a": np.full(3, i, np.float32), "b": i})
            if i:
                item = {name: writer.history[name][-2:] for name in "ab"}
                writer.create_item(table, float(i), item)


def test_inserted_data_gets_a_first_dimension(client):
    client.insert({"q": 5, "p": np.zeros((2, 3))}, {"any": 1.5, "heap": 2.0})
    for table, priority in (("any", 1.5), ("heap", 2.0)):
        (sample,) = client.sample(table, emit_timesteps=False)
        assert sample.info.priority == priority
        assert [column.shape for column in sample.data] == [(1, 2, 3), (1,)]
    ((step,),) = client.sample("any")
    assert [column.shape for column in step.data] == [(2, 3), ()]


def test_insert_keeps_its_connection_for_data_of_one_kind(client, server):
    for i in range(20):
        client.insert([i], {"any": 1.0})
        client.insert([float(i), i], {"heap": 1.0})
    assert [len(pool._idle) for pool in client._inserts._idle.values()] == [1, 1]
    infos = client.server_info()
    assert infos["any"].current_size == infos["heap"].current_size == 20
    assert infos["any"].num_episodes == 20


def test_insert_refuses_what_does_not_fit(client):
    with pytest.raises(ValueError, match="priorities must contain at least one item"):
        client.insert(1, {})
    with pytest.raises(ValueError, match="'nope' since the table could not be found"):
        client.insert(1, {"nope": 1.0})
    with pytest.raises(ValueError, match="`priority` must not be nan"):
        client.insert(1, {"any": float("nan")})
    with pytest.raises(
        ValueError, match=r"finite number that is at least 0, got -1\.0"
    ):
        client.insert(1, {"any": -1.0})
    with pytest.raises(ValueError, match="Encode text as uint8"):
        client.insert({"p": "text"}, {"any": 1.0})
    for empty in ([], {}, {"p": []}):
        with pytest.raises(ValueError, match=r"data: got .*no arrays and numbers"):
            client.insert(empty, {"any": 1.0})
    with pytest.raises(TypeError, match="None as a leaf"):
        client.insert({"p": None}, {"any": 1.0})
    with pytest.raises(ValueError, match="inconsistent with the table signature"):
        client.insert({"a": np.zeros(4, np.float32), "b": 1}, {"step": 1.0})
    assert client.server_info()["any"].current_size == 0


def test_inserted_steps_fit_signatures_of_steps(client):
    client.insert({"a": np.ones(3, np.float32), "b": 1}, {"step": 1.0})
    (sample,) = client.sample("step", emit_timesteps=False)
    assert _data(sample) == [[[1, 1, 1]], [1]]


def test_a_blocked_insert_does_not_block_others(client):
    for _ in range(2):
        client.insert([1], {"queue": 1.0})
    blocked = threading.Thread(
        target=client.insert, args=([2], {"queue": 1.0}), daemon=True
    )
    blocked.start()
    time.sleep(0.05)
    client.insert([3], {"any": 1.0})
    assert blocked.is_alive()
    assert len(list(client.sample("queue", 3))) == 3
    blocked.join(10)
    assert not blocked.is_alive()


def test_samples_are_flat_unless_unpacked_by_the_signature(client):
    _write_pairs(client, "pair")
    first, second = np.zeros(3), np.ones(3)
    (sample,) = client.sample("pair", emit_timesteps=False)
    assert isinstance(sample, ReplaySample)
    assert _data(sample) == [[[0, 0, 0], [1, 1, 1]], [0, 1]]
    assert sample.info._asdict() == {
        "key": sample.info.key,
        "probability": 1.0,
        "table_size": 1,
        "priority": 1.0,
        "times_sampled": 1,
    }
    (sample,) = client.sample(
        "pair", emit_timesteps=False, unpack_as_table_signature=True
    )
    assert list(sample.data) == ["a", "b"]
    np.testing.assert_array_equal(sample.data["a"], [first, second])
    ((one, two),) = client.sample("pair", unpack_as_table_signature=True)
    np.testing.assert_array_equal(one.data["a"], first)
    assert two.data["b"] == 1
    assert one.info == two.info
    _write_pairs(client, "any")
    (sample,) = client.sample(
        "any", emit_timesteps=False, unpack_as_table_signature=True
    )
    assert isinstance(sample.data, list)


def test_items_of_columns_of_different_lengths_are_not_taken_apart(client):
    with client.trajectory_writer(2) as writer:
        for i in range(2):
            writer.append([i, i])
        x, y = writer.history
        writer.create_item("any", 1.0, [x[-2:], y[-1:]])
        writer.create_item("heap", 1.0, [x[-1], y[-1]])
    for table in ("any", "heap"):
        with pytest.raises(ValueError, match="Can't split non timestep trajectory"):
            list(client.sample(table))


def test_sampling_many_yields_each_once_and_waits_for_more(client):
    _write_pairs(client, "heap", 3)
    assert [
        s.info.priority for s in client.sample("heap", 200, emit_timesteps=False)
    ] == [3.0] * 200
    samples = client.sample("queue", 3, emit_timesteps=False)
    timer = threading.Timer(
        0.1, lambda: [client.insert([i], {"queue": 1.0}) for i in range(3)]
    )
    timer.start()
    assert [_data(sample) for sample in samples] == [[[0]], [[1]], [[2]]]
    timer.join()


def test_sampling_keeps_its_connection(client):
    client.insert([1], {"any": 1.0})
    for _ in range(5):
        list(client.sample("any", 2))
    assert len(client._samples._idle._idle) == 1
    next(client.sample("any", 2))  # Given up half way.
    assert len(list(client.sample("any", 3))) == 3


def test_a_batch_has_items_in_the_structure_of_the_signature(client):
    _write_pairs(client, "pair")
    info, data = client.sample_batch("pair", 5)
    assert info.probability.tolist() == [1.0] * 5
    assert info.times_sampled.tolist() == [1, 2, 3, 4, 5]
    assert [leaf.shape for leaf in tree.flatten(data)] == [(5, 2, 3), (5, 2)]
    assert tree.flatten(data)[1].tolist() == [[0, 1]] * 5


def test_batches_of_servers_with_the_same_seed_are_the_same(start_server):
    drawn = []
    for _ in range(2):
        server = start_server(
            [_table("uniform", sampler=item_selectors.Uniform())], seed=3
        )
        client = server.localhost_client()
        for number in range(20):
            client.insert([np.float32(number)], {"uniform": 1.0})
        batches = [client.sample_batch("uniform", 7).data[0] for _ in range(3)]
        drawn.append(np.stack(batches))
    assert len(np.unique(drawn[0])) > 5
    np.testing.assert_array_equal(*drawn)


def test_what_cannot_be_sampled_is_said(client):
    with pytest.raises(ValueError, match='Could not find table "nope"'):
        client.sample_batch("nope", 1)
    with pytest.raises(ValueError, match="batch_size: got 0, expected at least 1"):
        client.sample_batch("any", 0)
    with pytest.raises(RuntimeError, match="Priority table nope was not found"):
        next(client.sample("nope"))
    with pytest.raises(ValueError, match='Could not find table "nope"'):
        next(client.sample("nope", unpack_as_table_signature=True))
    with pytest.raises(ValueError, match=r"max_samples \(0\) must be -1 or >= 1"):
        next(client.sample("any", 0))
    assert list(client.sample("any", -1)) == []


def test_priorities_are_updated_and_items_deleted_by_key(client):
    _write_pairs(client, "heap", 3)
    keys = {}
    for deleted in range(3):
        (sample,) = client.sample("heap", emit_timesteps=False)
        keys[sample.info.priority] = sample.info.key
        client.mutate_priorities("heap", deletes=[sample.info.key])
        assert client.server_info()["heap"].current_size == 2 - deleted
    assert list(keys) == [3.0, 2.0, 1.0]
    _write_pairs(client, "heap", 2)
    (sample,) = client.sample("heap", emit_timesteps=False)
    client.mutate_priorities("heap", {np.uint64(sample.info.key): np.float32(0.5)})
    client.mutate_priorities("heap", {12345: 9.0, 2**64 - 1: 1.0}, np.array([77, 78]))
    client.mutate_priorities("heap")
    (sample,) = client.sample("heap", emit_timesteps=False)
    assert sample.info.priority == 1.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -0.5])
def test_priorities_to_update_have_to_be_finite_and_not_negative(client, bad):
    with pytest.raises(ValueError, match=rf"updates: got the priority {bad} for key 7"):
        client.mutate_priorities("any", {3: 1.0, 7: bad})


def test_keys_have_to_be_unsigned_integers(client):
    for bad in (-1, 2**64):
        with pytest.raises(ValueError, match="updates: got a key that is negative or"):
            client.mutate_priorities("any", {bad: 1.0})
    for bad in (1.5, "a"):
        with pytest.raises(TypeError, match="deletes: got keys that are not integers"):
            client.mutate_priorities("any", deletes=[bad])


def test_unknown_tables_are_not_found(client):
    for call in (
        lambda: client.mutate_priorities("nope", {1: 1.0}),
        lambda: client.reset("nope"),
    ):
        with pytest.raises(RuntimeError, match="Priority table nope was not found"):
            call()


def test_reset_empties_a_table(client):
    client.insert([1], {"any": 1.0})
    client.reset("any")
    info = client.server_info(timeout=10)["any"]
    assert info.current_size == 0
    assert info.rate_limiter_info.insert_stats.completed == 0


def test_a_checkpoint_s_path_is_returned(client):
    assert client.checkpoint().startswith("/")


def test_clients_are_pickled_by_their_address(client, monkeypatch):
    other = pickle.loads(pickle.dumps(client))
    assert other.server_address == client.server_address
    assert repr(other) == f"Client, server_address={client.server_address}"
    assert other.server_info().keys() == client.server_info().keys()
    monkeypatch.setenv("TFRL_REPLAY_TOKEN", "secret-of-the-environment")
    assert b"secret" not in pickle.dumps(Client("localhost:1"))
    given = pickle.loads(pickle.dumps(Client("localhost:1", token="t", timeout=3.0)))
    assert given._access["token"] == "t"
    assert given._access["timeout"] == 3.0


@pytest.mark.parametrize("address", ["localhost", "localhost:", "localhost:x"])
def test_addresses_need_a_port(address):
    with pytest.raises(ValueError, match=f"server_address: got '{address}', expected"):
        Client(address)


def test_requests_go_on_after_a_connection_broke(client):
    client.server_info()
    (link,) = client._control._idle._idle
    link._stream._socket.shutdown(2)
    assert "any" in client.server_info()


def test_a_server_that_is_gone_is_reported_in_time():
    server = Server([_table("t")])
    client = Client(f"localhost:{server.port}", timeout=0.2)
    client.server_info()
    server.stop()
    with pytest.raises(
        errors.DeadlineExceededError,
        match=r"ServerInfo call did not complete within provided timeout of 0\.1s",
    ):
        client.server_info(timeout=0.1)
    for call in (
        client.server_info,
        lambda: client.insert([1], {"t": 1.0}),
        lambda: next(client.sample("t")),
        lambda: client.mutate_priorities("t", {1: 1.0}),
    ):
        with pytest.raises(errors.ReplayUnavailable, match="No replay server answered"):
            call()


def test_the_token_is_checked():
    server = Server([_table("t")], token="right")
    address = f"localhost:{server.port}"
    with pytest.raises(errors.AuthenticationError, match="another token"):
        Client(address, token="wrong").server_info()
    assert "t" in Client(address, token="right").server_info()
    server.stop()


def test_structured_writers_need_configs(client):
    with pytest.raises(ValueError, match="At least one config must be provided"):
        client.structured_writer([])


def test_the_old_writer_makes_items_of_the_last_steps(client):
    with client.writer(max_sequence_length=3) as writer:
        for i in range(4):
            writer.append([i, float(i)])
        writer.create_item("any", num_timesteps=1, priority=1.0)
        writer.create_item("any", num_timesteps=3, priority=2.0)
        writer.append_sequence([np.array([4, 5]), np.array([4.0, 5.0])])
        writer.create_item("any", 2, 3.0)
    items = [_data(_take(client)) for _ in range(3)]
    assert items == [[[3], [3.0]], [[1, 2, 3], [1, 2, 3]], [[4, 5], [4, 5]]]


def _take(client):
    (sample,) = client.sample("any", emit_timesteps=False)
    client.mutate_priorities("any", deletes=[sample.info.key])
    return sample


def test_the_old_writer_refuses_what_reverb_s_does(client, caplog):
    writer = client.writer(2)
    writer.append([1, 2.0])
    with pytest.raises(
        ValueError, match="`num_timesteps` is larger than number of buf"
    ):
        writer.create_item("any", 2, 1.0)
    with pytest.raises(ValueError, match=r"num_timesteps \(0\) must be a positive"):
        writer.create_item("any", 0, 1.0)
    with pytest.raises(ValueError, match="Previously it was 2, but is now 1"):
        writer.append([1])
    with pytest.raises(ValueError, match="tensors of non equal batch dimension"):
        writer.append_sequence([np.arange(3), np.arange(4.0)])
    with pytest.raises(ValueError, match="Got double but expected int64"):
        writer.append([1.0, 2.0])
    assert repr(writer).endswith("closed: False")
    writer.close()
    with pytest.raises(
        ValueError, match=r"close\(\) has already been called on Writer"
    ):
        writer.close()
    with pytest.raises(ValueError, match="Cannot reuse already closed Writer"):
        writer.__enter__()
    with caplog.at_level(logging.WARNING, "tfrl.replay_service"):
        client.writer(1).__del__()
    assert "deleted without calling .close" in caplog.text


def test_an_old_writer_that_is_deleted_sends_its_items_without_a_flush(
    client, monkeypatch
):
    """A flush lasts as long as a server is gone; the garbage collector cannot wait."""
    flushed = []
    writer = client.writer(1)
    writer.append([1])
    writer.create_item("any", 1, 1.0)
    monkeypatch.setattr(TrajectoryWriter, "flush", lambda *_, **__: flushed.append(1))
    del writer
    assert not flushed
    (sample,) = client.sample("any")
    assert int(sample[0].data[0]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), r"max_sequence_length \(0\) must be a positive integer"),
        ((2, False, 3), r"chunk_length \(3\) must be a positive integer le to max_seq"),
        ((2, False, 0), r"chunk_length \(0\) must be a positive integer le to"),
        ((2, False, 1, 0), r"max_in_flight_items \(0\) must be a positive integer"),
    ],
)
def test_the_old_writer_s_numbers_are_checked(client, arguments, message):
    with pytest.raises(ValueError, match=message):
        client.writer(*arguments)


@pytest.mark.parametrize("call", ["sample", "sample_batch"])
def test_a_number_of_items_is_whole(client, call):
    with pytest.raises(TypeError, match=r"got 2\.5, expected an integer"):
        list(getattr(client, call)("any", 2.5))


def test_a_priority_that_is_no_number_is_named(client):
    with pytest.raises(ValueError, match="updates: got the priority None for key 1"):
        client.mutate_priorities("any", {1: None})
    with pytest.raises(TypeError, match=r"updates: got .*, expected a number for each"):
        client.mutate_priorities("any", {1: np.array([2.0, 3.0])})
