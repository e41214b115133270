"""Several real servers as one table."""

import collections
import contextlib
import math
import os
import pathlib
import signal
import time

import numpy as np
import pytest
import tensorflow as tf

from tfrl import replay_service
from tfrl.distribute import ShardedClient
from tfrl.distribute.shards import home_shard
from tfrl.distribute.shards.shard import split_keys, tagged_keys
from tfrl.replay_service.replay_sample import SampleInfo

SPEC = {"x": tf.TensorSpec([1], tf.float32)}
EXPONENT = 0.5
# The priorities of the items of each shard. An item holds ten times its shard's number
# and its index.
PRIORITIES = ([1.0, 4.0], [9.0, 1.0, 1.0, 4.0], [16.0])
ITEMS = {10 * m + i: p for m, ps in enumerate(PRIORITIES) for i, p in enumerate(ps)}


def make_table(name, sampler, **options):
    settings = {
        "max_size": 1000,
        "rate_limiter": replay_service.rate_limiters.MinSize(1),
        "signature": SPEC,
        **options,
    }
    return replay_service.Table(
        name, sampler=sampler, remover=replay_service.selectors.Fifo(), **settings
    )


def make_tables(shard):
    selectors = replay_service.selectors
    other = {"x": tf.TensorSpec([1 + shard], tf.float32)}
    return [
        make_table("different", selectors.Uniform(), signature=other),
        make_table("uniform", selectors.Uniform()),
        make_table("prioritized", selectors.Prioritized(EXPONENT)),
        make_table("changed", selectors.Prioritized(1.0)),
        make_table("empty", selectors.Uniform()),
        make_table("huge", selectors.Uniform(), max_size=2**24),
        make_table("bare", selectors.Uniform(), signature=None),
        make_table(
            "narrow",
            selectors.Uniform(),
            rate_limiter=replay_service.rate_limiters.SampleToInsertRatio(1.0, 1, 8.0),
        ),
    ]


@pytest.fixture(scope="module")
def addresses():
    """The addresses of three servers, whose first tables are filled."""
    with contextlib.ExitStack() as stack:
        servers = [replay_service.Server(make_tables(m), seed=m) for m in range(3)]
        for shard, server in enumerate(servers):
            stack.callback(server.stop)
            client = server.localhost_client()
            with client.trajectory_writer(1) as writer:
                for i, priority in enumerate(PRIORITIES[shard]):
                    writer.append({"x": np.float32(10 * shard + i)})
                    for table in ("uniform", "prioritized", "changed"):
                        columns = {"x": writer.history["x"][-1:]}
                        writer.create_item(table, priority, columns)
        yield [f"localhost:{server.port}" for server in servers]


def draw(client, weighting, size, number):
    """Returns the infos and the values of a number of batches, one after another."""
    with contextlib.closing(client.stream(weighting)) as stream:
        batches = [stream.next_batch(size) for _ in range(number)]
    columns = [np.concatenate(column) for column in zip(*batches, strict=True)]
    info = SampleInfo(*columns[:5])
    return info, columns[5][:, 0].astype(int)


def expected_probabilities(table, weighting):
    """Returns the probability of each item by the definition of the weighting."""
    exponent = EXPONENT if table == "prioritized" else 0.0
    weights = {i: p**exponent for i, p in ITEMS.items()}
    of_shard = [
        math.fsum(w for i, w in weights.items() if i // 10 == m) for m in (0, 1, 2)
    ]
    share = {
        "size": [len(ps) / len(ITEMS) for ps in PRIORITIES],
        "mass": [w / math.fsum(of_shard) for w in of_shard],
        "equal": [1 / 3] * 3,
    }[weighting]
    return {i: share[i // 10] * w / of_shard[i // 10] for i, w in weights.items()}


@pytest.mark.parametrize("weighting", ["size", "mass", "equal"])
@pytest.mark.parametrize("table", ["uniform", "prioritized"])
def test_items_are_drawn_with_the_probability_that_their_infos_give(
    addresses, table, weighting
):
    client = ShardedClient(addresses, table)
    info, values = draw(client, weighting, size=16, number=250)
    expected = expected_probabilities(table, weighting)
    np.testing.assert_allclose(
        info.probability, [expected[value] for value in values], rtol=1e-12
    )
    counts = {i: int((values == i).sum()) for i in ITEMS}
    statistic = math.fsum(
        (counts[i] - 4000 * p) ** 2 / (4000 * p) for i, p in expected.items()
    )
    # The 1 - 1e-6 quantile of chi-square with 6 degrees of freedom.
    assert statistic < 38.3
    assert (info.table_size == len(ITEMS)).all()
    np.testing.assert_array_equal(info.priority, [ITEMS[value] for value in values])


def test_shards_give_their_shares_of_each_batch_to_a_row(addresses):
    _, values = draw(ShardedClient(addresses, "uniform"), "size", size=10, number=70)
    shards = values.reshape(70, 10) // 10
    exact = 10 / 7 * np.array([2, 4, 1])
    for m in range(3):
        given = (shards == m).sum(axis=1).cumsum()
        assert np.abs(given - np.arange(1, 71) * exact[m]).max() < 1 + 1e-9


def test_priorities_reach_their_shard_by_the_key_alone(addresses):
    client = ShardedClient(addresses, "changed")
    info, values = draw(client, "equal", size=30, number=4)
    keys = dict(zip(values.tolist(), info.key.tolist(), strict=True))
    assert sorted(keys) == sorted(ITEMS)
    assert [int(split_keys(np.uint64(keys[i]))[0]) for i in (1, 12, 20)] == [
        0,
        1,
        2,
    ]
    order = sorted(keys, reverse=True)
    client.update_priorities([keys[i] for i in order], [float(i + 1) for i in order])
    client.mutate_priorities({keys[13]: 100.0}, deletes=[keys[0], keys[20]])
    info, values = draw(client, "mass", size=30, number=8)
    left = {1: 2.0, 10: 11.0, 11: 12.0, 12: 13.0, 13: 100.0}
    assert set(values) <= set(left)
    np.testing.assert_array_equal(info.priority, [left[value] for value in values])
    assert client.num_items() == 5


def test_keys_of_other_shards_and_wrong_priorities_are_refused(addresses):
    client = ShardedClient(addresses, "changed")
    with pytest.raises(
        ValueError, match="key of shard 9, expected one of the 3 shards"
    ):
        client.update_priorities(tagged_keys(np.zeros(1, np.uint64), 9), [1.0])
    with pytest.raises(ValueError, match="got 2 for 1 keys"):
        client.update_priorities([1], [1.0, 2.0])
    with pytest.raises(ValueError, match="got the priority -1"):
        client.update_priorities([1], [-1.0])


def test_a_dataset_is_one_of_a_single_table(addresses):
    client = ShardedClient(addresses, "uniform")
    single = replay_service.TrajectoryDataset.from_table_signature(
        addresses[0], "uniform", 64
    ).batch(14, drop_remainder=True)
    dataset = client.as_dataset(14)
    assert dataset.element_spec == single.element_spec
    sample = next(iter(dataset))
    shards = split_keys(sample.info.key.numpy())[0]
    assert np.bincount(shards).tolist() == [4, 8, 2]
    np.testing.assert_array_equal(sample.data["x"][:, 0] // 10, shards)


def test_shards_give_whole_batches_in_turn(addresses):
    client = ShardedClient(addresses, "uniform")
    shards = []
    for sample in client.as_dataset(16, "size", mixed=False).take(14):
        [shard] = set(split_keys(sample.info.key.numpy())[0].tolist())
        shards.append(shard)
        np.testing.assert_allclose(sample.info.probability, 1 / 7, rtol=1e-12)
    assert np.bincount(shards).tolist() == [4, 8, 2]


def test_what_cannot_work_is_refused(addresses):
    with pytest.raises(ValueError, match="different signatures of 'different'"):
        ShardedClient(addresses, "different")
    with pytest.raises(ValueError, match="a window of 16; expected at least 64"):
        ShardedClient(addresses, "narrow")
    narrow = ShardedClient(addresses, "narrow", items_per_message=12)
    with pytest.raises(ValueError, match="a window of 16; expected at least 17"):
        narrow.as_dataset(13)
    with pytest.raises(ValueError, match="max_size 16777216, expected at most"):
        ShardedClient(addresses, "huge")
    with pytest.raises(
        ValueError, match="table: got 'none', but the server of shard 0"
    ):
        ShardedClient(addresses, "none")
    with pytest.raises(ValueError, match="addresses: got 0, expected 1 to 256"):
        ShardedClient([], "uniform")
    with pytest.raises(ValueError, match="'bare' has no signature"):
        ShardedClient(addresses, "bare").as_dataset(2)
    with pytest.raises(ValueError, match="weighting: got 'sizes'"):
        ShardedClient(addresses, "uniform").as_dataset(2, "sizes")


def test_a_shard_whose_limiter_waits_for_items_is_not_waited_for(addresses):
    client = ShardedClient(addresses, "empty", patience=0.1)
    writers = [client.living_client(m) for m in range(3)]
    writers[1].insert({"x": np.float32(1)}, {"empty": 1.0})
    with contextlib.closing(client.stream("equal")) as stream:
        assert set(split_keys(stream.next_batch(6)[0])[0]) == {1}
        for m in (0, 2):
            writers[m].insert({"x": np.float32(m)}, {"empty": 1.0})
        found, deadline = set(), time.monotonic() + 30
        while found != {0, 1, 2} and time.monotonic() < deadline:
            found = set(split_keys(stream.next_batch(6)[0])[0].tolist())
    assert found == {0, 1, 2}
    client.reset()
    assert client.num_items() == 0


def write(client, number):
    with client.trajectory_writer(1) as writer:
        for i in range(number):
            writer.append({"x": np.float32(i)})
            writer.create_item("t", 1.0, {"x": writer.history["x"][-1:]})


@pytest.mark.slow
def test_a_killed_shard_stops_nothing_and_is_used_again_at_its_new_address():
    table = make_table("t", replay_service.selectors.Uniform())
    servers = [replay_service.Server([table]) for _ in range(2)]
    book = [f"localhost:{server.port}" for server in servers]
    client = ShardedClient(lambda: book, "t", patience=0.3, timeout=0.3)
    for server in servers:
        write(server.localhost_client(), 20)
    actor = next(
        f"actor {i}" for i in range(99) if home_shard.preferences(f"actor {i}", 2)[0]
    )
    home = home_shard.HomeShard(client, actor, lambda c: c.trajectory_writer(1))
    assert home.shard == 1
    iterator = iter(client.as_dataset(8, "equal", max_in_flight=8))

    def shards():
        info = next(iterator).info
        return split_keys(info.key.numpy())[0], info

    assert set(shards()[0]) == {0, 1}
    os.kill(servers[1].pid, signal.SIGKILL)
    for _ in range(5):
        found, info = shards()
    assert set(found) == {0}
    np.testing.assert_allclose(info.probability, 1 / 20)
    assert set(info.table_size.numpy()) == {20}
    lost = tagged_keys(np.zeros(1, np.uint64), 1)
    client.update_priorities(np.append(lost, info.key.numpy()[:1]), [7.0, 5.0])

    def append(writer):
        writer.append({"x": np.float32(100)})
        writer.create_item("t", 1.0, {"x": writer.history["x"][-1:]})
        writer.flush()

    home.write(append)
    home.write(lambda writer: writer.close())
    assert (home.shard, home.moves) == (0, 1)
    assert client.num_items() == 21
    servers[1] = replay_service.Server([table])
    assert servers[1].port != int(book[1].split(":")[1])
    book[1] = f"localhost:{servers[1].port}"
    write(servers[1].localhost_client(), 21)
    deadline = time.monotonic() + 30
    while set(found) != {0, 1} and time.monotonic() < deadline:
        found, info = shards()
    assert set(found) == {0, 1}
    for server in servers:
        server.stop()
    with pytest.raises(tf.errors.OpError, match="None of the 2 shards"):
        collections.deque(iterator, maxlen=0)


@pytest.mark.slow
def test_a_server_that_stops_while_it_writes_a_checkpoint_is_not_waited_for(
    monkeypatch, caplog
):
    table = make_table("t", replay_service.selectors.Uniform())
    servers = [replay_service.Server([table]) for _ in range(2)]
    addresses = [f"localhost:{server.port}" for server in servers]
    client = ShardedClient(addresses, "t", patience=0.1, timeout=0.3)
    write_checkpoint = replay_service.Client.checkpoint

    def stop_and_write(self):
        if self.server_address == addresses[1]:
            os.kill(servers[1].pid, signal.SIGSTOP)
        return write_checkpoint(self)

    monkeypatch.setattr(replay_service.Client, "checkpoint", stop_and_write)
    written = client.checkpoint()
    assert pathlib.Path(written[0]).exists()
    assert written[1] is None
    assert "Shard 1 at" in caplog.text
    os.kill(servers[1].pid, signal.SIGCONT)
    monkeypatch.undo()
    assert all(client.checkpoint())
    for server in servers:
        server.stop()
