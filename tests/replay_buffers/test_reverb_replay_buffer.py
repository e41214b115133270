"""`ReverbReplayBuffer` over tables of a server."""

import inspect
import logging
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfrl import replay_service as reverb
from tfrl.drivers import dynamic_step_driver
from tfrl.environments import test_envs, tf_py_environment
from tfrl.policies import random_tf_policy
from tfrl.replay_buffers import reverb_replay_buffer, reverb_utils
from tfrl.replay_buffers.reverb import reverb_dataset
from tfrl.replay_service import client_pools
from tfrl.specs import tensor_spec
from tfrl.trajectories import trajectory

SPEC = {"frame": tf.TensorSpec([], tf.int64), "pair": tf.TensorSpec([2], tf.float32)}


TRAJECTORY_SPEC = trajectory.Trajectory(
    step_type=tf.TensorSpec([], tf.int32),
    observation=tf.TensorSpec([], tf.int32),
    action=tf.TensorSpec([], tf.int32),
    policy_info=(),
    next_step_type=tf.TensorSpec([], tf.int32),
    reward=tf.TensorSpec([], tf.float32),
    discount=tf.TensorSpec([], tf.float32),
)


def make_table(name, length, kind="uniform", spec=SPEC, **options):
    signature = tensor_spec.add_outer_dim(spec, length)
    if kind == "queue":
        return reverb.Table.queue(name, 100, signature=signature)
    sampler = {
        "uniform": reverb.selectors.Uniform(),
        "prioritized": reverb.selectors.Prioritized(1.0),
        "fifo": reverb.selectors.Fifo(),
    }[kind]
    return reverb.Table(
        name,
        sampler=sampler,
        remover=reverb.selectors.Fifo(),
        max_size=100,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=signature,
        **options,
    )


@pytest.fixture(scope="module")
def server():
    server = reverb.Server(
        [
            make_table("fours", 4),
            make_table("any", None),
            make_table("by_priority", 4, "prioritized"),
            make_table("in_order", 4, "fifo", max_times_sampled=1),
            make_table("queue", None, "queue"),
            make_table("pairs", 2, spec=TRAJECTORY_SPEC),
        ]
    )
    yield server
    server.stop()


@pytest.fixture
def make_buffer(server):
    """Makes a buffer of a table, which is empty then."""

    def make(table_name="fours", sequence_length=4, **options):
        options.setdefault("local_server", server)
        buffer = reverb_replay_buffer.ReverbReplayBuffer(
            SPEC, table_name, sequence_length, **options
        )
        buffer.clear()
        return buffer

    return make


def step(number):
    return {
        "frame": np.array(number, np.int64),
        "pair": np.array([number, -number], np.float32),
    }


def write(buffer, table_name, *sequences, priority=1.0):
    with buffer.py_client.trajectory_writer(num_keep_alive_refs=50) as writer:
        for numbers in sequences:
            for number in numbers:
                writer.append(step(number))
            item = {k: c[-len(numbers) :] for k, c in writer.history.items()}
            writer.create_item(table_name, priority, item)


def write_fours(buffer, number, table_name="fours"):
    write(buffer, table_name, *[range(100 * i, 100 * i + 4) for i in range(number)])


def check_frames(data, shape):
    frames = data["frame"].numpy()
    assert frames.shape == shape
    np.testing.assert_array_equal(np.diff(frames, axis=-1), 1)
    np.testing.assert_array_equal(data["pair"][..., 0], frames)
    np.testing.assert_array_equal(data["pair"][..., 1], -frames)
    return frames


def test_whole_sequences_in_batches(make_buffer):
    buffer = make_buffer()
    write_fours(buffer, 5)
    dataset = buffer.as_dataset(sample_batch_size=8, num_steps=4)
    data, info = dataset.element_spec
    assert data["pair"].shape.as_list() == [8, 4, 2]
    assert info.key.shape.as_list() == [8, 4]
    seen = set()
    for data, info in dataset.take(6):
        frames = check_frames(data, (8, 4))
        seen.update(frames[:, 0].tolist())
        keys = info.key.numpy()
        assert (keys == keys[:, :1]).all()
        np.testing.assert_array_equal(info.probability, np.full((8, 4), 0.2))
        np.testing.assert_array_equal(info.table_size, np.full((8, 4), 5))
        assert info.times_sampled.dtype == tf.int32
    assert seen == {0, 100, 200, 300, 400}


def test_number_of_steps_is_that_of_the_sequences_by_default(make_buffer):
    buffer = make_buffer()
    write_fours(buffer, 2)
    data, info = next(iter(buffer.as_dataset(sample_batch_size=3)))
    check_frames(data, (3, 4))
    data, info = next(iter(buffer.as_dataset()))
    check_frames(data, (4,))
    assert info.priority.shape == (4,)


def test_a_dataset_is_consumed_in_a_graph(make_buffer):
    buffer = make_buffer()
    write_fours(buffer, 3)
    iterator = iter(buffer.as_dataset(sample_batch_size=2))

    @tf.function
    def total(n):
        sum_of_frames = tf.zeros([], tf.int64)
        for _ in tf.range(n):
            data, _ = next(iterator)
            sum_of_frames += tf.reduce_sum(data["frame"] % 100)
        return sum_of_frames

    assert int(total(tf.constant(5))) == 5 * 2 * (0 + 1 + 2 + 3)
    assert int(total(tf.constant(7))) == 7 * 2 * (0 + 1 + 2 + 3)
    assert total.experimental_get_tracing_count() == 1


def test_sequences_of_any_length(make_buffer):
    buffer = make_buffer("any", None)
    write(buffer, "any", range(3), range(10, 17))
    dataset = buffer.as_dataset()
    assert dataset.element_spec[0]["pair"].shape.as_list() == [None, 2]
    lengths = {
        check_frames(data, data["frame"].shape).size for data, _ in dataset.take(20)
    }
    assert lengths == {3, 7}
    data, info = next(iter(buffer.as_dataset(sample_batch_size=1)))
    assert data["frame"].shape == info.key.shape in ((1, 3), (1, 7))


def test_sequences_of_several_lengths_make_no_batch(make_buffer):
    buffer = make_buffer("any", None)
    write(buffer, "any", range(3), range(10, 17))
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(buffer.as_dataset(sample_batch_size=30).take(1))


@pytest.mark.parametrize("batch_size", [None, 3])
def test_sequences_are_cut_into_pieces(batch_size, make_buffer):
    buffer = make_buffer()
    write_fours(buffer, 4)
    dataset = buffer.as_dataset(sample_batch_size=batch_size, num_steps=2)
    shape = (2,) if batch_size is None else (batch_size, 2)
    assert dataset.element_spec[0]["frame"].shape.as_list() == list(shape)
    seen = set()
    for data, info in dataset.take(50):
        frames = check_frames(data, shape)
        seen.update(frames[..., 0].reshape(-1).tolist())
        assert info.key.shape == shape
    assert seen == {100 * i + f for i in range(4) for f in (0, 2)}


def test_sequences_of_any_length_are_cut_and_what_is_left_is_lost(make_buffer):
    buffer = make_buffer("any", None)
    write(buffer, "any", range(3), range(10, 15))
    dataset = buffer.as_dataset(sample_batch_size=2, num_steps=2)
    assert dataset.element_spec[0]["pair"].shape.as_list() == [2, 2, 2]
    seen = set()
    for data, _ in dataset.take(30):
        seen.update(check_frames(data, (2, 2))[:, 0].tolist())
    assert seen == {0, 10, 12}


def test_preprocessing_is_of_whole_sequences_before_they_are_cut(make_buffer):
    buffer = make_buffer()
    write_fours(buffer, 3)

    def preprocess(data):
        assert data["frame"].shape == (4,)
        return {**data, "frame": data["frame"] + tf.reduce_max(data["frame"]) % 100}

    dataset = buffer.as_dataset(2, 2, sequence_preprocess_fn=preprocess)
    for data, _ in dataset.take(10):
        assert set((data["frame"].numpy()[:, 0] % 100).tolist()) <= {3, 5}
    whole = buffer.as_dataset(2, 4, 2, sequence_preprocess_fn=preprocess)
    for data, _ in whole.take(3):
        assert (data["frame"].numpy()[:, 0] % 100 == 3).all()


@pytest.mark.slow
def test_autograph_converts_the_functions_of_the_caller_alone(make_buffer, monkeypatch):
    buffer = make_buffer()
    write_fours(buffer, 3)
    callers = []
    original = reverb_dataset.whole_sequences

    def spy(*args, **kwargs):
        callers.append(sys._getframe(1).f_code.co_filename)
        return original(*args, **kwargs)

    monkeypatch.setattr(reverb_dataset, "whole_sequences", spy)

    def clip(data):
        if tf.reduce_max(data["frame"]) > 2:  # AutoGraph has to convert this.
            return {**data, "frame": tf.zeros_like(data["frame"])}
        return data

    for data, _ in buffer.as_dataset(2, sequence_preprocess_fn=clip).take(2):
        assert not data["frame"].numpy().any()
    callers.clear()
    tf.data.Dataset.range(2).flat_map(lambda _: buffer.as_dataset(2))
    assert callers == [reverb_replay_buffer.__file__]


def test_the_service_is_not_converted(make_buffer, monkeypatch):
    buffer = make_buffer()
    callers = []
    request = client_pools.ControlConnections.request

    def spy(*args, **kwargs):
        callers.extend(frame.filename for frame in inspect.stack())
        return request(*args, **kwargs)

    monkeypatch.setattr(client_pools.ControlConnections, "request", spy)
    assert int(tf.function(buffer.num_frames)()) == 0
    assert any(name.endswith("client.py") for name in callers)
    assert not any("autograph" in name for name in callers)


def test_deterministic_pass_goes_through_a_queue_once(make_buffer):
    buffer = make_buffer("queue", None, rate_limiter_timeout_ms=100)
    write(buffer, "queue", (1, 2, 3), (10, 11, 12, 13, 14))
    dataset = buffer.as_dataset(num_steps=2, single_deterministic_pass=True)
    frames = [data["frame"].numpy().tolist() for data, _ in dataset]
    assert frames == [[1, 2], [10, 11], [12, 13]]
    write(buffer, "queue", range(4), range(4, 8), range(8, 12))
    dataset = buffer.as_dataset(2, single_deterministic_pass=True)
    assert [d["frame"].numpy()[:, 0].tolist() for d, _ in dataset] == [[0, 4]]


def test_deterministic_pass_needs_an_order(make_buffer):
    with pytest.raises(ValueError, match="either the sampler or the remover is not"):
        make_buffer().as_dataset(single_deterministic_pass=True)


def test_a_dataset_ends_where_the_limiter_has_no_more_in_time(make_buffer):
    buffer = make_buffer("in_order", rate_limiter_timeout_ms=100)
    write_fours(buffer, 5, "in_order")
    # Five sequences are ten pieces, and these three batches of three.
    sizes = [data["frame"].shape for data, _ in buffer.as_dataset(3, 2)]
    assert sizes == [(3, 2)] * 3


def test_sizes_and_contents(make_buffer):
    buffer = make_buffer()
    assert (buffer.capacity, buffer.num_frames()) == (100, 0)
    write_fours(buffer, 7)
    assert buffer.num_frames() == buffer.get_table_info().current_size == 7

    @tf.function
    def size_cleared_size():
        before = buffer.num_frames()
        buffer.clear()
        return before, buffer.num_frames()

    assert [int(size) for size in size_cleared_size()] == [7, 0]
    assert buffer.data_spec == SPEC
    assert buffer.stateful_dataset
    assert buffer.variables() == []


def test_priorities_change_what_is_drawn(make_buffer):
    buffer = make_buffer("by_priority")
    write_fours(buffer, 2, "by_priority")
    info = next(iter(buffer.as_dataset(10)))[1]
    keys = np.unique(info.key)
    buffer.update_priorities(keys[:1], np.zeros([1]))
    for _, info in buffer.as_dataset(10).skip(3).take(1):
        assert set(info.key.numpy().reshape(-1).tolist()) == {int(keys[1])}


def make_frames(step_types, numbers):
    """A batch of frames of several environments; they observe `numbers`."""
    size = len(numbers)
    return trajectory.Trajectory(
        step_type=np.array(step_types[0], np.int32),
        observation=np.array(numbers, np.int32),
        action=np.zeros([size], np.int32),
        policy_info=(),
        next_step_type=np.array(step_types[1], np.int32),
        reward=np.ones([size], np.float32),
        discount=np.ones([size], np.float32),
    )


def make_writing_buffer(server, batch_size):
    """Each row writes pairs of frames."""
    buffer = reverb_replay_buffer.ReverbReplayBuffer(
        TRAJECTORY_SPEC,
        "pairs",
        2,
        local_server=server,
        make_observer=lambda client: reverb_utils.ReverbAddTrajectoryObserver(
            client, "pairs", 2
        ),
        batch_size=batch_size,
    )
    buffer.clear()
    return buffer


@pytest.mark.parametrize("in_graph", [False, True])
def test_rows_of_batches_go_to_observers_of_their_own(in_graph, server):
    buffer = make_writing_buffer(server, 2)
    add_batch = tf.function(buffer.add_batch) if in_graph else buffer.add_batch
    batches = [
        make_frames([[0, 0], [1, 2]], [0, 10]),
        make_frames([[1, 2], [1, 0]], [1, 11]),
        make_frames([[1, 0], [2, 1]], [2, 12]),
    ]
    numbers = [add_batch(batch) for batch in batches]
    assert [(int(n), n.dtype) for n in numbers] == [(i, tf.int64) for i in range(3)]
    buffer.flush()
    assert buffer.num_frames() == 3
    drawn = next(iter(buffer.as_dataset(64)))[0].observation.numpy()
    assert {tuple(pair) for pair in drawn.tolist()} == {(0, 1), (1, 2), (10, 11)}
    buffer.clear()
    # What was not written before is not written now.
    assert int(add_batch(make_frames([[1, 1], [1, 1]], [3, 13]))) == 0
    buffer.flush()
    assert buffer.num_frames() == 0


def test_drivers_in_graphs_write_through_the_buffer(server):
    environment = tf_py_environment.TFPyEnvironment(test_envs.CountingEnv(3))
    policy = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    buffer = make_writing_buffer(server, 1)
    dynamic_step_driver.DynamicStepDriver(
        environment, policy, [buffer.add_batch], num_steps=7
    ).run()
    buffer.flush()
    # Frames 0 1 2 3, 10 11 12 13, 20: three pairs in each of two episodes.
    assert buffer.num_frames() == 6
    drawn = next(iter(buffer.as_dataset(20)))[0].observation.numpy()
    np.testing.assert_array_equal(drawn[:, 1], drawn[:, 0] + 1)


def test_batches_are_checked_and_need_observers(make_buffer, server):
    with pytest.raises(NotImplementedError, match="pass one, or write with"):
        make_buffer().add_batch(None)
    with pytest.raises(ValueError, match="items/observation: got "):
        make_writing_buffer(server, 2).add_batch(
            make_frames([[0], [1]], [0])._replace(step_type=np.zeros([2], np.int32))
        )


@pytest.mark.parametrize("in_graph", [False, True])
def test_all_of_a_queue_is_gathered_with_zeros_after_the_shorter(in_graph, make_buffer):
    buffer = make_buffer("queue", None)
    gather_all = tf.function(buffer.gather_all) if in_graph else buffer.gather_all
    for _ in range(2):
        write(buffer, "queue", (1, 2, 3), (10, 11, 12, 13, 14))
        items = gather_all()
        assert items["frame"].numpy().tolist() == [
            [1, 2, 3, 0, 0],
            [10, 11, 12, 13, 14],
        ]
        assert items["pair"].shape == (2, 5, 2)
        assert buffer.num_frames() == 0
    with pytest.raises((ValueError, tf.errors.OpError), match="is empty; write"):
        gather_all()


def test_only_a_queue_is_gathered(make_buffer):
    with pytest.raises(NotImplementedError, match=r"make it with replay_service.Table"):
        make_buffer().gather_all()


@pytest.mark.slow
def test_a_checkpoint_holds_the_contents_through_the_server(tmp_path, caplog):
    def start(path):
        table = make_table("fours", 4)
        checkpointer = reverb.checkpointers.DefaultCheckpointer(str(path))
        server = reverb.Server([table], checkpointer=checkpointer)
        buffer = reverb_replay_buffer.ReverbReplayBuffer(
            SPEC, "fours", 4, local_server=server
        )
        return server, buffer

    server, buffer = start(tmp_path / "replay")
    write_fours(buffer, 3)
    path = tf.train.Checkpoint(buffer=buffer).save(tmp_path / "ckpt")
    server.stop()
    server, buffer = start(tmp_path / "replay")
    with caplog.at_level(logging.WARNING):
        tf.train.Checkpoint(buffer=buffer).restore(path).assert_consumed()
    assert buffer.num_frames() == 3
    assert "is empty" not in caplog.text
    buffer.clear()
    with caplog.at_level(logging.WARNING):
        tf.train.Checkpoint(buffer=buffer).restore(path)
    assert f"it held 3 items, which are in {tmp_path / 'replay'}" in caplog.text
    server.stop()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_steps": 8}, r"num_steps > sequence_length \(8 vs. 4\)"),
        ({"num_steps": 3}, "not a multiple of num_steps"),
        ({"sample_batch_size": 2, "num_parallel_calls": 3}, "cannot be bigger than"),
        ({"sample_batch_size": 0}, r"sample_batch_size: .* got 0"),
    ],
)
def test_datasets_that_cannot_be_are_refused(arguments, message, make_buffer):
    with pytest.raises(ValueError, match=message):
        make_buffer().as_dataset(**arguments)


def test_one_server_is_given(server, make_buffer):
    address = f"localhost:{server.port}"
    assert make_buffer(local_server=None, server_address=address).local_server is None
    for arguments in ({}, {"server_address": address, "local_server": server}):
        with pytest.raises(ValueError, match="exactly one of the server_address"):
            reverb_replay_buffer.ReverbReplayBuffer(SPEC, "fours", 4, **arguments)


def test_tables_that_do_not_fit_are_refused(make_buffer):
    with pytest.raises(
        ValueError, match=r"got 'nope', but the server at .* has \['any"
    ):
        make_buffer("nope")
    with pytest.raises(ValueError, match=r"'fours'/frame: got shape \(4,\), .* \(5,\)"):
        make_buffer("fours", 5)
    with pytest.raises(ValueError, match="got 2 tensors, expected 1"):
        reverb_replay_buffer.ReverbReplayBuffer(
            SPEC["frame"], "fours", 4, local_server=make_buffer().local_server
        )
    assert make_buffer("fours", None).capacity == 100


def test_get_next_is_not_supported(make_buffer):
    with pytest.raises(NotImplementedError, match="iterate over as_dataset"):
        make_buffer().get_next()


@pytest.mark.slow
def test_datasets_of_ones_own(make_buffer):
    buffer = make_buffer()
    write_fours(buffer, 4)
    arguments = {
        "server_address": f"localhost:{buffer.local_server.port}",
        "table": "fours",
        "data_spec": SPEC,
        "sequence_length": 4,
    }
    make = reverb_replay_buffer.make_reverb_dataset
    info, data = next(iter(make(**arguments, batch_size=3, prefetch_size=1)))
    check_frames(data, (3, 4))
    assert info.key.shape == (3, 4)
    interleaved = make(
        **arguments,
        batch_size=3,
        cycle_length=2,
        per_sequence_fn=lambda sample: sample.data["frame"],
        dataset_transformation=lambda dataset: dataset.map(lambda frame: frame[0]),
    )
    for firsts in interleaved.take(5):
        assert firsts.shape == (3,)
        assert set(firsts.numpy().tolist()) <= {0, 100, 200, 300}
