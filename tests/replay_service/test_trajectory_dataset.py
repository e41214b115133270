"""Datasets of items: their elements, their batches, and how they end."""

import contextlib
import gc
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_service import errors, item_selectors, rate_limiters
from tfrl.replay_service.replay_sample import ReplaySample, SampleInfo
from tfrl.replay_service.sampling import dataset as dataset_module
from tfrl.replay_service.sampling import generator as sample_generator
from tfrl.replay_service.table import Table
from tfrl.replay_service.trajectory_dataset import TrajectoryDataset

SIGNATURE = {
    "x": tf.TensorSpec([2, 3], tf.float32),
    "y": [tf.TensorSpec([None], tf.int64)],
}
FLAT = ([tf.float32, tf.int64], [tf.TensorShape([2, 3]), tf.TensorShape([2])])


def make_table(name, signature=None, sampler=None):
    return Table(
        name=name,
        sampler=sampler or item_selectors.Fifo(),
        remover=item_selectors.Fifo(),
        max_size=1000,
        rate_limiter=rate_limiters.MinSize(1),
        signature=signature,
    )


@pytest.fixture(scope="module")
def server(start_server):
    queues = ("queue", "stopped", "graph", "one", "two")
    return start_server(
        [
            make_table("pairs", SIGNATURE),
            make_table("plain"),
            make_table("lengths"),
            make_table("empty"),
            make_table("uniform", sampler=item_selectors.Uniform()),
            *(Table.queue(name, 100) for name in queues),
        ]
    )


@pytest.fixture(scope="module")
def address(server):
    client = server.localhost_client()
    with client.trajectory_writer(num_keep_alive_refs=2) as writer:
        for i in range(9):
            writer.append({"x": np.full(3, i, np.float32), "y": [np.int64(10 * i)]})
            x, y = writer.history["x"], writer.history["y"][0]
            if i >= 1:
                writer.create_item("pairs", i, {"x": x[-2:], "y": [y[-2:]]})
                for table in ("plain", "uniform"):
                    writer.create_item(table, i, [x[-2:], y[-2:]])
        for length in (1, 2):
            writer.create_item("lengths", 1.0, [writer.history["y"][0][-length:]])
    return f"localhost:{server.port}"


def fill(server, table, values):
    for value in values:
        server.localhost_client().insert([np.int64(value)], {table: 1.0})


def of_scalars(address, table, in_flight=4, **options):
    return TrajectoryDataset(
        address, table, [tf.int64], [tf.TensorShape([1])], in_flight, **options
    )


def values_of(dataset):
    return [sample.data[0].numpy().squeeze(-1).tolist() for sample in dataset]


def completed(server, table):
    info = server.localhost_client().server_info()[table]
    return info.rate_limiter_info.sample_stats.completed


def test_the_signature_is_the_element_spec_with_tuples_for_lists(address):
    dataset = TrajectoryDataset.from_table_signature(address, "pairs", 4)
    assert isinstance(dataset, tf.data.Dataset)
    assert dataset.element_spec == ReplaySample(
        info=SampleInfo(
            *(
                tf.TensorSpec([], dtype)
                for dtype in (tf.uint64, tf.float64, tf.int64, tf.float64, tf.int32)
            )
        ),
        data={
            "x": tf.TensorSpec([2, 3], tf.float32),
            "y": (tf.TensorSpec([None], tf.int64),),
        },
    )


def test_elements_are_items(address):
    dataset = TrajectoryDataset.from_table_signature(address, "pairs", 4, max_samples=2)
    for sample in dataset:
        np.testing.assert_array_equal(sample.data["x"], [[0.0] * 3, [1.0] * 3])
        np.testing.assert_array_equal(sample.data["y"][0], [0, 10])
        assert sample.info.table_size == 8
        assert sample.info.priority == 1.0


@pytest.mark.parametrize("drop_remainder", [False, True])
@pytest.mark.parametrize("fixed", [False, True])
def test_batches_are_those_of_tf_data(address, drop_remainder, fixed):
    def make():
        return TrajectoryDataset(address, "plain", *FLAT, 5, max_samples=8)

    size = 3 if fixed else tf.Variable(3, dtype=tf.int64).read_value()
    native = make().batch(size, drop_remainder=drop_remainder)
    general = make().map(lambda sample: sample).batch(size, drop_remainder)
    assert native.element_spec == general.element_spec
    counts = []
    for one, other in zip(native, general, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, one.data, other.data)
        np.testing.assert_array_equal(one.info.key, other.info.key)
        counts.append(len(one.info.key))
    assert counts == ([3, 3] if drop_remainder else [3, 3, 2])


def test_items_of_different_lengths_are_elements_but_no_batch(address):
    dataset = TrajectoryDataset(
        address, "lengths", [tf.int64], [tf.TensorShape([None])], 4, max_samples=2
    )
    assert [sample.data[0].shape for sample in dataset] == [[1], [1]]
    uniform = TrajectoryDataset(
        address, "pairs", [tf.int32], [tf.TensorShape(None)], 4
    ).batch(2)
    assert uniform.element_spec.data[0].shape.rank is None


def test_a_batch_size_below_one_is_refused(address):
    dataset = of_scalars(address, "queue")
    with pytest.raises(tf.errors.InvalidArgumentError, match="greater than zero"):
        dataset.batch(0)


@pytest.mark.parametrize("native", [True, False])
def test_a_limiter_s_timeout_ends_the_dataset_after_what_is_there(
    server, address, native
):
    fill(server, "queue", range(5))
    dataset = of_scalars(address, "queue", rate_limiter_timeout_ms=20)
    if native:
        assert values_of(dataset.batch(3)) == [[0, 1, 2], [3, 4]]
    else:
        assert [value for value in values_of(dataset)] == [0, 1, 2, 3, 4]


def test_no_more_is_drawn_ahead_than_in_flight(server, address):
    before = completed(server, "uniform")
    iterator = iter(TrajectoryDataset(address, "uniform", *FLAT, 4))
    for i in range(1, 8):
        next(iterator)
        assert completed(server, "uniform") <= before + i + 4
    before = completed(server, "uniform")
    iterator = iter(TrajectoryDataset(address, "uniform", *FLAT, 2, 3).batch(5))
    next(iterator)
    assert completed(server, "uniform") <= before + 5 + 6


def test_a_loop_in_a_graph_takes_samples(server, address):
    fill(server, "graph", range(6))

    @tf.function
    def total(dataset):
        result = tf.constant(0, tf.int64)
        for sample in dataset:
            result += tf.reduce_sum(sample.data[0])
        return result

    dataset = of_scalars(address, "graph", max_samples=6).batch(4).prefetch(1)
    assert total(dataset) == 15


def test_addresses_and_tables_may_be_tensors(server, address):
    fill(server, "one", [1, 1, 1])
    fill(server, "two", [2, 2, 2])
    shards = tf.data.Dataset.from_tensor_slices(([address] * 2, ["one", "two"]))
    dataset = shards.interleave(
        lambda a, t: of_scalars(a, t, max_samples=3).batch(2), cycle_length=2
    )
    assert values_of(dataset) == [[1, 1], [2, 2], [1], [2]]


def test_nothing_is_drawn_ahead_by_tf_data_unless_asked(address):
    for dataset in (
        of_scalars(address, "queue"),
        of_scalars(address, "queue").batch(2),
    ):
        options = dataset.map(lambda sample: sample).options()
        assert options.autotune.enabled is False
        assert options.experimental_optimization.inject_prefetch is False
        assert options.experimental_optimization.map_parallelization is False


def test_a_dataset_can_be_iterated_again(address):
    dataset = TrajectoryDataset(address, "plain", *FLAT, 4, max_samples=2)
    assert len(list(dataset)) == len(list(dataset.repeat(2))) / 2 == 2


def test_what_does_not_fit_the_signature_is_refused_by_the_iterator(address):
    dataset = TrajectoryDataset(address, "pairs", [tf.float64], [tf.TensorShape([])], 1)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="Requested 1 tensors, but table signature shows 2 tensors",
    ):
        next(iter(dataset))
    shapes = [tf.TensorShape([2, 4]), tf.TensorShape([2])]
    dataset = TrajectoryDataset(address, "pairs", FLAT[0], shapes, 1).batch(2)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Requested incompatible tensor at flattened index 0 from table 'pairs'",
    ):
        next(iter(dataset))
    dataset = TrajectoryDataset(address, "plain", FLAT[0], shapes, 1)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Received incompatible tensor at flattened index 0 from table 'plain'",
    ):
        next(iter(dataset))


def test_an_unknown_table_and_a_missing_server_are_told(address):
    dataset = TrajectoryDataset(address, "nope", *FLAT, 1)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Priority table nope was not found"
    ):
        next(iter(dataset))
    dataset = TrajectoryDataset("localhost:1", "nope", *FLAT, 1, timeout=0.1)
    with pytest.raises(tf.errors.UnknownError, match="No replay server answered at"):
        next(iter(dataset))


def test_signatures_are_looked_up(address):
    with pytest.raises(
        ValueError,
        match=r"does not contain any table named nope. Found: empty, graph, lengths",
    ):
        TrajectoryDataset.from_table_signature(address, "nope", 1)
    with pytest.raises(ValueError, match=r"Table plain at .* not have a signature"):
        TrajectoryDataset.from_table_signature(address, "plain", 1)
    with pytest.raises(errors.DeadlineExceededError, match="within provided timeout"):
        TrajectoryDataset.from_table_signature(
            "localhost:1", "plain", 1, get_signature_timeout_secs=0.1
        )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"max_in_flight_samples_per_worker": 0},
            r"max_in_flight_samples_per_worker \(0\) must be a positive integer$",
        ),
        (
            {"num_workers_per_iterator": 0},
            r"num_workers_per_iterator \(0\) must be a positive integer or -1",
        ),
        (
            {"max_samples_per_stream": -2},
            r"max_samples_per_stream \(-2\) must be a positive integer or -1",
        ),
        ({"max_samples": 2.5}, r"max_samples \(2.5\) must be a positive integer"),
        (
            {"rate_limiter_timeout_ms": 100.5},
            r"rate_limiter_timeout_ms \(100.5\) must be an integer >= -1",
        ),
        ({"max_samples": 0}, r"max_samples \(0\) must be a positive integer or -1"),
        (
            {"rate_limiter_timeout_ms": -2},
            r"rate_limiter_timeout_ms \(-2\) must be an integer >= -1",
        ),
        ({"shapes": [tf.TensorShape([])]}, "don't have the same nested structure"),
    ],
)
def test_arguments_are_checked(options, text):
    arguments = {
        "server_address": "localhost:1",
        "table": "table",
        "dtypes": FLAT[0],
        "shapes": FLAT[1],
        "max_in_flight_samples_per_worker": 1,
    }
    with pytest.raises(ValueError, match=text):
        TrajectoryDataset(**{**arguments, **options})


@pytest.mark.parametrize("native", [True, False])
def test_an_iterator_that_waits_can_be_deleted(address, native):
    dataset = of_scalars(address, "stopped")
    dataset = (dataset.batch(2) if native else dataset).prefetch(1)
    readers = len(sample_generator._readers)
    iterator = iter(dataset)
    # Prefetching begins with a first call, which would wait as well.
    waiting = threading.Thread(target=_next_or_error, args=(iterator,), daemon=True)
    waiting.start()
    while len(sample_generator._readers) == readers:
        time.sleep(0.01)
    time.sleep(0.05)
    sample_generator._close_all()
    waiting.join(5)
    assert not waiting.is_alive()
    del iterator
    gc.collect()


def _next_or_error(iterator):
    with contextlib.suppress(StopIteration, tf.errors.OpError):
        next(iterator)


def test_a_prefetching_iterator_that_waits_can_be_deleted(server, address):
    fill(server, "stopped", [1])
    readers = len(sample_generator._readers)
    iterator = iter(of_scalars(address, "stopped").prefetch(2))
    next(iterator)
    started = time.monotonic()
    del iterator
    gc.collect()
    assert time.monotonic() - started < 5
    assert len(sample_generator._readers) == readers


@pytest.mark.slow
def test_a_process_ends_while_its_dataset_waits(address):
    script = f"""
import threading, time
import tensorflow as tf
from tfrl.replay_service import TrajectoryDataset
dataset = TrajectoryDataset({address!r}, "empty", tf.int64, tf.TensorShape([1]), 1)
iterators = [iter(dataset.prefetch(1)), iter(dataset.batch(2))]
for iterator in iterators:
    threading.Thread(target=lambda i=iterator: next(i, None), daemon=True).start()
time.sleep(0.3)
print("waiting", flush=True)
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.stdout == "waiting\n"
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("use", ["from_table_signature", "batch"])
def test_no_function_is_converted_inside_one_of_tf_data(use, address, monkeypatch):
    callers = []

    def spy_on(module, name):
        original = getattr(module, name)

        def spy(*args, **kwargs):
            callers.append(sys._getframe(1).f_code.co_filename)
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, spy)

    spy_on(dataset_module.tree, "map_structure")
    spy_on(sample_generator, "batches")

    def make(_):
        if use == "batch":
            return TrajectoryDataset(address, "plain", *FLAT, 1).batch(2)
        return TrajectoryDataset.from_table_signature(address, "pairs", 1)

    tf.data.Dataset.range(2).flat_map(make)
    assert len(callers) >= 2
    # Code that AutoGraph has converted is in temporary files.
    assert set(callers) == {dataset_module.__file__}
