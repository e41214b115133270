"""A client's calls as operations, now and in graphs."""

import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_service import item_selectors, rate_limiters
from tfrl.replay_service.table import Table
from tfrl.replay_service.tf_client import TFClient

STEP = [tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.int64)]
DTYPES = [tf.float32, tf.int64]


@pytest.fixture(scope="module")
def server(start_server):
    return start_server(
        [
            Table(
                name=name,
                sampler=item_selectors.Lifo(),
                remover=item_selectors.Fifo(),
                max_size=10,
                rate_limiter=rate_limiters.MinSize(1),
                signature=signature,
            )
            for name, signature in (
                ("plain", None),
                ("ordered", None),
                ("signed", STEP),
                ("pairs", [tf.TensorSpec([2], tf.int64)]),
            )
        ]
    )


@pytest.fixture(scope="module")
def client(server):
    return TFClient(f"localhost:{server.port}")


@pytest.fixture(params=[False, True], ids=["eager", "graph"])
def run(request):
    return tf.function if request.param else (lambda function: function)


def step(value):
    return [tf.fill([2], float(value)), tf.constant(value, tf.int64)]


def insert(client, value, tables, priority=1.0):
    priorities = tf.fill([len(tables)], tf.constant(priority, tf.float64))
    return client.insert(step(value), tf.constant(tables), priorities)


def test_samples_and_inserts_are_made_in_the_order_of_the_program(client, monkeypatch):
    other, now = tf.Variable(0), client._client.insert

    def insert_later(*arguments):
        time.sleep(0.01)
        now(*arguments)

    monkeypatch.setattr(client._client, "insert", insert_later)

    def body(i):
        other.assign_add(1)  # TensorFlow orders the loop by this variable.
        priorities = tf.ones([1], tf.float64)
        client.insert([tf.zeros([2]), i], tf.constant(["ordered"]), priorities)
        return i + 1

    @tf.function(autograph=False)
    def go(first, end):
        before = client.sample("ordered", DTYPES).data[1]
        tf.while_loop(lambda i: i < end, body, [first])
        return before, client.sample("ordered", DTYPES).data[1]

    insert(client, 9, ["ordered"])
    for first in (10, 20):
        start = tf.constant(first, tf.int64)
        assert [int(value) for value in go(start, start + 10)] == [first - 1, first + 9]


def test_what_is_inserted_is_sampled_without_a_time_dimension(client, run):
    @run
    def go():
        insert(client, 3, ["plain", "signed"], 2.0)
        return [client.sample(t, {"x": DTYPES}) for t in ("plain", "signed")]

    for sample in go():
        assert sample.info.priority == 2.0
        assert sample.info.key.dtype == tf.uint64
        x, y = sample.data["x"]
        np.testing.assert_array_equal(x, [3.0, 3.0])
        assert y == 3


def test_priorities_are_updated_and_unknown_keys_ignored(client, run):
    insert(client, 1, ["plain"])
    key = client.sample("plain", DTYPES).info.key

    @run
    def update():
        client.update_priorities("plain", [key, tf.constant(5, tf.uint64)], [7.0, 1.0])

    update()
    assert client.sample("plain", DTYPES).info.priority == 7.0


def test_a_table_named_twice_gets_two_items(server, client):
    def size():
        return server.localhost_client().server_info()["plain"].current_size

    before = size()
    insert(client, 1, ["plain", "plain"])
    assert size() == before + 2


def test_what_is_not_asked_for_is_refused(client):
    insert(client, 1, ["plain"])
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Received incompatible tensor at flattened index 0 from table 'plain'",
    ):
        client.sample("plain", [tf.float64, tf.int64])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Specification has 1 tensors"
    ):
        client.sample("plain", [tf.int64])


def test_whole_trajectories_are_not_steps(server, client):
    with server.localhost_client().trajectory_writer(2) as writer:
        for i in range(2):
            writer.append([np.int64(i)])
        writer.create_item("pairs", 1.0, [writer.history[0][-2:]])
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Specification has \(dtype, shape\): \(int64, \[2\]\).  Tensor has "
        r"\(dtype, shape\): \(int64, \[\]\)",
    ):
        client.sample("pairs", [tf.int64])


def test_refusals_of_the_server_are_errors_of_tensorflow(client, run):
    bad = [
        lambda: insert(client, 1, ["nope"]),
        lambda: client.insert(
            [tf.zeros([9]), tf.constant(1, tf.int64)],
            tf.constant(["signed"]),
            tf.constant([1.0], tf.float64),
        ),
        lambda: client.update_priorities(
            "plain", tf.constant([1, 2], tf.uint64), tf.constant([1.0], tf.float64)
        ),
    ]
    texts = ["table 'nope' since", r"float \[9\] tensor", r"\(\[2\] vs. \[1\]\)"]
    for call, text in zip(bad, texts, strict=True):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            run(lambda call=call: [call(), None][1])()


def test_unknown_tables_are_not_found(client):
    keys, priorities = tf.constant([1], tf.uint64), tf.constant([1.0], tf.float64)
    with pytest.raises(tf.errors.NotFoundError, match="table nope was not found"):
        client.update_priorities("nope", keys, priorities)
    with pytest.raises(tf.errors.NotFoundError, match="table nope was not found"):
        client.sample("nope", DTYPES)
    with pytest.raises(tf.errors.InvalidArgumentError, match="nope was not found"):
        tf.function(lambda: client.sample("nope", DTYPES))()


def test_arguments_are_checked(client):
    tables, priorities = tf.constant(["plain"]), tf.constant([1.0], tf.float64)
    for bad in (tf.constant("plain"), tf.constant([1])):
        with pytest.raises(ValueError, match="tables must be a string tensor of rank"):
            client.insert(step(1), bad, priorities)
    for bad in (tf.constant([1.0]), tf.constant(1.0, tf.float64)):
        with pytest.raises(ValueError, match="priorities must be a float64 tensor of"):
            client.insert(step(1), tables, bad)
    with pytest.raises(ValueError, match="must have the same shape"):
        client.insert(step(1), tables, tf.zeros([2], tf.float64))
    with pytest.raises(ValueError, match="uint64"):
        client.update_priorities("plain", tf.constant([1], tf.int64), priorities)


def test_failed_samples_leave_no_thread(server, monkeypatch):
    monkeypatch.setenv("TFRL_REPLAY_TRANSPORT", "tcp")
    client = TFClient(f"localhost:{server.port}")

    def sample():
        with pytest.raises(tf.errors.NotFoundError, match="nope was not found"):
            client.sample("nope", DTYPES)

    sample()
    before = threading.active_count()
    for _ in range(4):
        sample()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_an_address_needs_a_port():
    with pytest.raises(ValueError, match="server_address: got 'nowhere', expected"):
        TFClient("nowhere")
