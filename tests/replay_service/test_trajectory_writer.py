"""Trajectory writers against a real server; what is expected was tried with Reverb."""

import collections
import contextlib
import gc
import math
import os
import socket
import threading
import time
import traceback

import numpy as np
import pytest

from tfrl import specs
from tfrl.replay_service import connection, errors, item_selectors, rate_limiters
from tfrl.replay_service.client import Client
from tfrl.replay_service.server import Server, Table
from tfrl.replay_service.trajectory_writer import TrajectoryColumn

PAIR = {
    "a": specs.ArraySpec((2, 3), np.float32),
    "b": specs.ArraySpec((2,), np.int64),
}
Point = collections.namedtuple("Point", "x y")


def _table(name, limiter=None, **kwargs):
    return Table(
        name,
        sampler=item_selectors.Fifo(),
        remover=item_selectors.Fifo(),
        max_size=100_000,
        rate_limiter=limiter or rate_limiters.MinSize(1),
        max_times_sampled=1,
        **kwargs,
    )


@pytest.fixture(scope="module")
def server():
    server = Server(
        [
            _table("any"),
            _table("other"),
            _table("pair", signature=PAIR),
            _table("queue", rate_limiters.Queue(2)),
        ]
    )
    yield server
    server.stop()


@pytest.fixture
def client(server):
    client = server.localhost_client()
    for name in ("any", "other", "pair", "queue"):
        client.reset(name)
    return client


def _drain(client, table="any"):
    """Returns the data of all items of a table, oldest first."""
    size = client.server_info()[table].current_size
    if not size:
        return []
    samples = client.sample(table, size, emit_timesteps=False)
    return [[column.tolist() for column in sample.data] for sample in samples]


def _filled(client, steps=5, keep=3):
    """Returns a writer with steps {"a": [i, i, i], "b": i}."""
    writer = client.trajectory_writer(keep)
    for i in range(steps):
        writer.append({"a": np.full(3, i, np.float32), "b": i})
    return writer


# History: 5 steps, of which the last 3 are kept; the steps that each key gives.
_KEPT = {
    "last": (-1, 4),
    "by number": (2, 2),
    "newest by number": (4, 4),
    "last two": (slice(-2, None), [3, 4]),
    "all kept": (slice(-3, None), [2, 3, 4]),
    "from a number on": (slice(2, None), [2, 3, 4]),
    "up to the newest": (slice(2, 5), [2, 3, 4]),
    "beyond the end": (slice(4, 10), [4]),
    "without the last": (slice(-3, -1), [2, 3]),
    "mixed signs": (slice(-2, 4), [3]),
    "every other": (slice(-3, None, 2), [2, 4]),
    "backwards": (slice(-1, -4, -1), [4, 3, 2]),
    "nothing": (slice(3, 3), []),
    "list": ([2, 3], [2, 3]),
    "list from the end": ([-1, -3], [4, 2]),
    "list with one twice": ([-1, -1], [4, 4]),
    "numpy integer": (np.int64(-1), 4),
}


def test_history_is_indexed_like_a_list_of_all_steps(client):
    writer = _filled(client)
    history = writer.history["b"]
    assert len(history) == 5
    for name, (key, expected) in _KEPT.items():
        column = history[key]
        assert column.numpy().tolist() == expected if expected != [] else not column
        assert column.is_squeezed == isinstance(expected, int), name
        assert len(column) == (1 if column.is_squeezed else len(expected)), name
    wide = writer.history["a"]
    assert wide[-2:].shape == (2, 3)
    assert wide[-1].shape == (3,)
    assert wide[-1].dtype == np.float32
    assert wide[[2, 4]].numpy().tolist() == [[2, 2, 2], [4, 4, 4]]


@pytest.mark.parametrize(
    "key",
    [0, -5, -6, slice(None), slice(-4, None), slice(0, 2), slice(-10, -1), [1], [-6]],
    ids=str,
)
def test_steps_that_are_not_kept_cannot_be_referred_to(client, key):
    writer = _filled(client)
    with pytest.raises(
        ValueError,
        match=r"(?s)TrajectoryColumns cannot contain any None data references: "
        r"TrajectoryColumn at path \('b', .*\) got \[.*None.*num_keep_alive_refs",
    ):
        writer.history["b"][key]


def test_more_steps_than_there_are_cannot_be_referred_to(client):
    writer = _filled(client, steps=2)
    with pytest.raises(ValueError, match=r"got \[None, step 0, step 1\]"):
        writer.history["b"][-3:]


def test_keys_that_are_no_steps_are_refused(client):
    history = _filled(client).history["b"]
    with pytest.raises(IndexError, match="list index out of range"):
        history[5]
    for key in ("a", None, (1, 2), 1.5):
        with pytest.raises(TypeError, match="indices must be integers or slices"):
            history[key]


def test_columns_are_indexed_like_lists(client):
    column = _filled(client).history["b"][-3:]
    assert column[0].numpy() == 2
    assert column[0].is_squeezed
    assert column[1:].numpy().tolist() == [3, 4]
    assert column[[0, 2]].numpy().tolist() == [2, 4]
    assert [one.numpy().tolist() for one in column] == [2, 3, 4]
    with pytest.raises(IndexError):
        column[3]
    with pytest.raises(TypeError, match="TrajectoryColumn indices must be"):
        column["x"]


def test_history_needs_a_step(client):
    writer = client.trajectory_writer(3)
    with pytest.raises(
        RuntimeError,
        match="history cannot be accessed before `append` is called at least once",
    ):
        _ = writer.history


def test_columns_expire_with_their_steps(client):
    writer = _filled(client)
    column = writer.history["b"][-1:]
    for i in range(3):
        writer.append({"a": np.zeros(3, np.float32), "b": i})
    assert column.shape == (1,)
    with pytest.raises(RuntimeError, match="expired data references"):
        column.numpy()
    with pytest.raises(ValueError, match="column 1: Column contains expired CellRef"):
        writer.create_item("any", 1.0, [writer.history["a"][-1:], column])
    writer.end_episode()
    with pytest.raises(ValueError, match="expired"):
        writer.create_item("any", 1.0, [column])


def test_new_leaves_have_none_in_earlier_steps(client):
    writer = _filled(client, steps=2)
    before = writer.history
    writer.append({"b": 2, "c": {"d": 1.5}})
    assert list(before) == ["a", "b"]
    assert list(writer.history) == ["a", "b", "c"]
    assert [len(leaf) for leaf in before.values()] == [3, 3]
    assert len(writer.history["c"]["d"]) == 3
    assert writer.history["c"]["d"][-1:].numpy().tolist() == [1.5]
    with pytest.raises(ValueError, match=r"\('c', 'd', slice.* got \[None, step 2\]"):
        writer.history["c"]["d"][-2:]
    with pytest.raises(ValueError, match=r"\('a', -1\) got \[None\]"):
        writer.history["a"][-1]
    assert writer.history["a"][-3:-1].shape == (2, 3)
    writer.append({"a": None, "b": 3})
    assert writer.history["a"][-3:-2].shape == (1, 3)
    assert writer.episode_steps == 4
    # Steps from before the leaf was there go with those after.
    item = [writer.history["c"]["d"][-2], writer.history["b"][-3:]]
    writer.create_item("any", 1.0, item)
    writer.flush()
    assert _drain(client) == [[1.5, [1, 2, 3]]]


def test_partial_steps_are_completed_by_the_next_call(client):
    writer = client.trajectory_writer(3)
    writer.append({"a": 1, "b": 2}, partial_step=True)
    assert writer.episode_steps == 0
    assert len(writer.history["a"]) == 1
    writer.create_item("any", 1.0, [writer.history["a"][-1:]])
    with pytest.raises(
        ValueError,
        match=r"Field \('a',\) has already been set in the active step by previous "
        r"\(partial\) append call and thus must be omitted or set to None but got: 7",
    ):
        writer.append({"a": 7})
    writer.append({"a": None, "c": 3.0})
    assert writer.episode_steps == 1
    writer.append({"a": 4}, partial_step=True)
    writer.flush()  # Sends the last step's item.
    writer.create_item("any", 1.0, [writer.history["a"][-2:]])
    writer.flush()
    writer.append({"b": 5, "c": 6.0})
    writer.create_item("any", 1.0, {k: writer.history[k][-2:] for k in "abc"})
    assert [len(writer.history[k]) for k in "abc"] == [2, 2, 2]
    writer.flush()
    assert _drain(client) == [[[1]], [[1, 4]], [[1, 4], [2, 5], [3.0, 6.0]]]


def test_an_episode_s_end_clears_the_history_unless_told_otherwise(client):
    writer = _filled(client)
    writer.end_episode(clear_buffers=False)
    assert writer.episode_steps == 0
    writer.append({"a": np.full(3, 5, np.float32), "b": 5})
    assert writer.episode_steps == 1
    assert len(writer.history["b"]) == 6
    writer.create_item("any", 1.0, [writer.history["b"][-3:]])
    writer.append({"a": np.full(3, 6, np.float32), "b": 6}, partial_step=True)
    writer.end_episode()
    assert writer.episode_steps == 0
    assert len(writer.history["b"]) == 0
    with pytest.raises(ValueError, match=r"got \[None\]"):
        writer.history["b"][-1]
    writer.append({"a": np.full(3, 7, np.float32), "b": 7})
    assert writer.history["b"][0].numpy() == 7
    assert _drain(client) == [[[3, 4, 5]]]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            {"b": 1.5},
            r"wrong dtype provided for column \('b',\). Got double but exp.* int64",
        ),
        ({"a": np.zeros(3)}, r"column \('a',\). Got double but expected float\."),
        (
            {"a": np.zeros(4, np.float32)},
            r"Tensor of incompatible shape provided for column \('a',\). Got \[4\] "
            r"which is incompatible with \[3\]\.",
        ),
        ({"a": np.float32(1)}, r"Got \[\] which is incompatible with \[3\]"),
        ({"c": "text"}, r"Column \('c',\): Values of dtype <U4.*Encode text as uint8"),
        ({"c": object()}, r"Column \('c',\): Values of dtype object"),
        ({"b": [1, 2]}, r"append: at path \('b',\) the data is a list.* was a leaf"),
    ],
    ids=str,
)
def test_data_that_does_not_fit_is_refused(client, data, expected):
    writer = _filled(client)
    with pytest.raises(ValueError, match=expected):
        writer.append({"a": np.zeros(3, np.float32), "b": 1} | data)
    assert len(writer.history["b"]) == 5
    assert writer.episode_steps == 5
    writer.append({"a": np.full(3, 9, np.float32), "b": 9})
    writer.create_item("any", 1.0, {k: writer.history[k][-1] for k in "ab"})
    writer.flush()
    assert _drain(client) == [[[9, 9, 9], 9]]


@pytest.mark.parametrize(
    "data",
    [
        3.0,
        (1, 2.0),
        [1, 2],
        Point(1, (2, {"z": 3})),
        {"o": Point(np.ones(2), [1, 2]), "p": {2: 1, 1: 2}},
        collections.OrderedDict(b=1, a=np.zeros((2, 2), np.uint8)),
    ],
    ids=str,
)
def test_history_has_the_structure_of_the_data(client, data):
    import tree

    writer = client.trajectory_writer(2)
    for _ in range(3):
        writer.append(data)
    tree.assert_same_structure(writer.history, data)
    trajectory = tree.map_structure(lambda leaf: leaf[-1], writer.history)
    writer.create_item("any", 1.0, trajectory)
    writer.flush()
    expected = [np.asarray(leaf).tolist() for leaf in tree.flatten(data)]
    assert _drain(client) == [expected]


def test_structures_may_alternate_and_grow(client):
    writer = client.trajectory_writer(4)
    writer.append(((1,), {"x": 1}))
    writer.append(((2, 20), {"x": 2, "y": Point(3, None)}))
    writer.append(((3,), {"x": 3}))
    writer.append(((4, 40), {"y": Point(None, 5)}))
    (one, two), rest = writer.history
    assert one[:].numpy().tolist() == [1, 2, 3, 4]
    assert two[[1, 3]].numpy().tolist() == [20, 40]
    assert rest["x"][:3].numpy().tolist() == [1, 2, 3]
    assert rest["y"].x[1].numpy() == 3
    assert rest["y"].y[-1].numpy() == 5


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, "bool"),
        (np.bool_(1), "bool"),
        (2**40, "int64"),
        (1.5, "float64"),
        (1j, "complex128"),
        (np.float16(1), "float16"),
        (np.arange(10, dtype=np.uint16)[::3], "uint16"),
        (np.asfortranarray(np.arange(6.0).reshape(2, 3)), "float64"),
        (np.arange(3).astype(">i4"), "int32"),
        (np.zeros((0, 3)), "float64"),
    ],
    ids=str,
)
def test_leaves_keep_their_dtypes(client, value, dtype):
    writer = client.trajectory_writer(2)
    for _ in range(2):
        writer.append([value])
    column = writer.history[0][-1]
    assert column.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(column.numpy(), np.asarray(value))


def test_eager_tensors_are_leaves(client):
    import tensorflow as tf

    writer = client.trajectory_writer(2)
    for i in range(2):
        writer.append({"x": tf.constant([i, 2.0]), "h": tf.constant(i, tf.bfloat16)})
    assert writer.history["x"][:].numpy().tolist() == [[0, 2], [1, 2]]
    assert writer.history["h"].__getitem__(-1).dtype.name == "bfloat16"


def test_data_is_copied_when_it_is_appended(client):
    writer = client.trajectory_writer(2)
    array = np.zeros(3)
    writer.append([array])
    array += 1
    assert writer.history[0][-1].numpy().tolist() == [0, 0, 0]


def test_items_mix_columns_of_different_steps(client):
    writer = _filled(client, steps=5, keep=5)
    history = writer.history
    writer.create_item(
        "any",
        2.5,
        {
            "z": history["a"][0],
            "s": history["b"][[0, 3]],
            "t": (history["b"][1:4], history["b"][-1]),
        },
    )
    writer.flush()
    (sample,) = client.sample("any", emit_timesteps=False)
    assert sample.info.priority == 2.5
    assert [x.tolist() for x in sample.data] == [[0, 3], [1, 2, 3], 4, [0, 0, 0]]


def test_items_go_in_in_the_order_of_their_creation(client):
    writer = client.trajectory_writer(3)
    expected = []
    for i in range(500):
        writer.append({"x": i})
        length = 1 + i % min(i + 1, 3)
        writer.create_item("any", 1.0, [writer.history["x"][-length:]])
        expected.append([list(range(i + 1 - length, i + 1))])
        if i % 100 == 99:
            writer.end_episode(clear_buffers=False)
    writer.flush()
    assert _drain(client) == expected
    assert client.server_info()["any"].num_episodes == 0  # All have been sampled.


def test_steps_of_all_sizes_arrive(client):
    rng = np.random.default_rng(0)
    for shape, count in (((84, 84, 4), 200), ((1500, 1000), 5), ((), 1000)):
        writer = client.trajectory_writer(2)
        data = [rng.integers(0, 255, shape, np.uint8) for _ in range(count)]
        for i, value in enumerate(data):
            writer.append((value, i))
            writer.create_item("any", 1.0, [leaf[-1] for leaf in writer.history])
        writer.flush()
        seen = 0
        for sample in client.sample("any", count, emit_timesteps=False):
            np.testing.assert_array_equal(sample.data[0], data[seen])
            assert sample.data[1] == seen
            seen += 1
        assert seen == count


def test_trajectories_have_to_be_of_columns(client):
    writer = _filled(client)
    column = writer.history["a"][-1:]
    for bad in (np.zeros(3), writer.history["a"], None):
        with pytest.raises(
            TypeError, match="All leaves of `trajectory` must be `TrajectoryColumn` but"
        ):
            writer.create_item("any", 1.0, {"x": column, "y": bad})
    for empty in ({}, {"x": writer.history["a"][3:3]}, [column, column[1:]]):
        with pytest.raises(ValueError, match="trajectory must not be empty"):
            writer.create_item("any", 1.0, empty)
    other = _filled(client)
    with pytest.raises(ValueError, match="history of another writer"):
        other.create_item("any", 1.0, [column])
    assert isinstance(column, TrajectoryColumn)
    writer.create_item("any", 1.0, column)
    writer.flush()
    assert _drain(client) == [[[[4, 4, 4]]]]


def test_priorities_have_to_be_finite_and_not_negative(client):
    import tensorflow as tf

    writer = _filled(client)
    item = [writer.history["b"][-1:]]
    with pytest.raises(ValueError, match="`priority` must not be nan"):
        writer.create_item("any", math.nan, item)
    for bad in (-1.0, math.inf, np.float32(-1)):
        with pytest.raises(ValueError, match="finite number that is at least 0, got"):
            writer.create_item("any", bad, item)
    with pytest.raises(TypeError, match="must be a number, got 'a'"):
        writer.create_item("any", "a", item)
    for good in (0.0, 2, np.float32(2), np.array([2.0]), tf.constant(2.0)):
        writer.create_item("any", good, item)
    writer.flush()
    priorities = [
        s.info.priority for s in client.sample("any", 5, emit_timesteps=False)
    ]
    assert priorities == [0, 2, 2, 2, 2]


def test_items_are_checked_against_tables_and_their_signatures(client):
    writer = _filled(client)
    a, b = writer.history["a"], writer.history["b"]
    with pytest.raises(
        ValueError,
        match="Unable to create item in table 'nope' since the table could not be fo",
    ):
        writer.create_item("nope", 1.0, [a[-1]])
    start = (
        "Unable to create item in table 'pair' since the provided trajectory is "
        "inconsistent with the table signature. The "
    )
    for item, text in [
        (
            (a[-1:], b[-2:]),
            r"column 0 to be a float \[2,3\] tensor but got a float \[1,3\]",
        ),
        (
            (a[-1], b[-2:]),
            r"column 0 to be a float \[2,3\] tensor but got a float \[3\]",
        ),
        (
            (b[-2:], a[-2:]),
            r"column 0 to be a float \[2,3\] tensor but got a int64 \[2\]",
        ),
        ((a[-2:],), "trajectory has 1 columns but the table signature has 2 columns"),
    ]:
        with pytest.raises(ValueError, match=start + ".*" + text):
            writer.create_item("pair", 1.0, item)
    writer.create_item("pair", 1.0, {"x": a[-2:], "y": b[-2:]})
    writer.flush()
    assert _drain(client, "pair") == [[[[3, 3, 3], [4, 4, 4]], [3, 4]]]


def test_what_only_the_server_refuses_is_raised_by_a_later_call(client):
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
    assert _drain(client) == [[[1, 2]], [[2]]]


def test_flush_waits_for_the_limiter_up_to_its_timeout(client):
    writer = _filled(client)
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


def test_items_go_out_by_themselves_after_a_while(client):
    writer = _filled(client)
    writer.create_item("any", 1.0, [writer.history["b"][-1]])
    samples = client.sample("any", emit_timesteps=False)
    assert next(samples).data == [4]


def test_with_flushes_unless_the_service_failed(client):
    def fail(writer, table, error):
        with writer:
            writer.append([1])
            writer.create_item(table, 1.0, [writer.history[0][-1]])
            raise error

    with pytest.raises(KeyError):
        fail(client.trajectory_writer(2), "any", KeyError("x"))
    assert _drain(client) == [[1]]
    for _ in range(2):
        client.insert(1, {"queue": 1.0})  # And then it is full.
    with pytest.raises(errors.ReverbError, match="broken"):
        fail(client.trajectory_writer(2), "queue", errors.ReverbError("broken"))


def test_closed_writers_cannot_be_used(client):
    writer = _filled(client)
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
    assert _drain(client) == [[4]]


def test_deleting_a_writer_does_not_wait_for_a_limiter(client):
    writer = _filled(client)
    for _ in range(5):
        writer.create_item("queue", 1.0, [writer.history["b"][-1]])
    started = time.monotonic()
    del writer
    gc.collect()
    assert time.monotonic() - started < 5


def test_configure_sets_what_one_leaf_keeps(client):
    writer = client.trajectory_writer(2)
    with pytest.raises(
        ValueError, match=r"num_keep_alive_refs \(0\) must be a positive"
    ):
        writer.configure(("a",), num_keep_alive_refs=0, max_chunk_length=None)
    with pytest.raises(ValueError, match=r"max_chunk_length \(3\) must be None or a"):
        writer.configure(("a",), num_keep_alive_refs=2, max_chunk_length=3)
    writer.configure(("a",), num_keep_alive_refs=4, max_chunk_length=1)
    for i in range(600):
        writer.append({"a": i, "b": i})
        if i >= 3:
            writer.create_item(
                "any", 1.0, [writer.history["a"][-4:], writer.history["b"][-2:]]
            )
    with pytest.raises(ValueError, match="the last 2 are kept"):
        writer.history["b"][-3:]
    writer.configure(("b",), num_keep_alive_refs=1, max_chunk_length=None)
    with pytest.raises(ValueError, match="the last 1 are kept"):
        writer.history["b"][-2:]
    writer.flush()
    assert len(_drain(client)) == 597
    with pytest.raises(
        ValueError, match=r"num_keep_alive_refs \(0\) must be a positive"
    ):
        client.trajectory_writer(0)


def _cut(writer):
    """Breaks a writer's connection."""
    writer._stream._link._stream._socket.shutdown(socket.SHUT_RDWR)


def test_items_go_in_once_when_connections_break(client):
    writer = client.trajectory_writer(3)
    count = 400
    for i in range(count):
        writer.append({"x": i})
        writer.create_item("any", 1.0, [writer.history["x"][-1]])
        if i % 90 == 70:
            with contextlib.suppress(OSError, AttributeError):  # Is being made anew.
                _cut(writer)
    writer.flush()
    assert _drain(client) == [[i] for i in range(count)]


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


def test_a_server_that_is_gone_is_named():
    server = Server([_table("t")])
    client = Client(f"localhost:{server.port}", timeout=0.2)
    writer = client.trajectory_writer(2)
    writer.append([1])
    server.stop()
    writer.create_item("t", 1.0, [writer.history[0][-1]])
    with pytest.raises(errors.ReplayUnavailable, match=f"'localhost:{server.port}'"):
        writer.flush()
    with pytest.raises(errors.ReplayUnavailable, match="No replay server answered at"):
        client.trajectory_writer(2)


def test_a_forked_child_writes_on_its_own(client):
    writer = _filled(client)
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
    assert sorted(_drain(client), key=str) == [[4], [[4, 7]]]


def test_one_thread_serves_all_writers(client):
    writers = [_filled(client) for _ in range(5)]
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("tfrl-replay-writers") == 1
    del writers


@pytest.fixture
def grpc_client(client, monkeypatch):
    """A client whose host has no Unix sockets."""
    monkeypatch.delattr(socket, "AF_UNIX")
    monkeypatch.setattr(connection, "_local_servers", {})
    return client


def test_items_go_in_once_over_grpc_too(grpc_client):
    writer = grpc_client.trajectory_writer(3)
    for i in range(300):
        writer.append({"x": i, "y": np.zeros((50, 100), np.uint8)})
        writer.create_item("any", 1.0, [writer.history["x"][-1]])
        if i == 150:
            writer._stream._link._stream._call.cancel()
    writer.flush()
    assert _drain(grpc_client) == [[i] for i in range(300)]
    writer.create_item("queue", 1.0, [writer.history["x"][-3:]] * 2)
    writer.end_episode()
    samples = grpc_client.sample("queue", emit_timesteps=False)
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
