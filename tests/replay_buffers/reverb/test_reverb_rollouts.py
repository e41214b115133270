"""Items of whole rollouts, beside those of an observer for each environment."""

import contextlib
import socket

import numpy as np
import pytest
import tensorflow as tf

from tests.agents.every_agent import KINDS
from tfrl import replay_buffers, replay_service, train
from tfrl.environments import native
from tfrl.replay_buffers.reverb import reverb_rollouts
from tfrl.replay_service import errors
from tfrl.trajectories import trajectory


@pytest.fixture(scope="module")
def server():
    def table(name, **options):
        return replay_service.Table.queue(name, 10_000, **options)

    signature = (tf.TensorSpec([2, 3], tf.float32), tf.TensorSpec([2], tf.int64))
    server = replay_service.Server(
        [
            table("rows"),
            table("rollouts"),
            table("signed", signature=signature),
            replay_service.Table.queue("small", 2),
        ]
    )
    yield server
    server.stop()


@pytest.fixture
def client(server):
    client = server.localhost_client()
    for name in client.server_info():
        client.reset(name)
    return client


def drain(client, table):
    """The dtypes, shapes and bytes of all items, oldest first."""
    size = client.server_info()[table].current_size
    if not size:
        return []
    samples = client.sample(table, size, emit_timesteps=False)
    return [
        [(column.dtype.name, column.shape, column.tobytes()) for column in sample.data]
        for sample in samples
    ]


def make_frames(length, batch_size, seed=0):
    """Frames `[length, batch_size, ...]` of random bytes, with ends of episodes."""
    rng = np.random.default_rng(seed)
    outer = length, batch_size
    step_types = rng.integers(0, 3, (length + 1, batch_size), np.int32)
    return trajectory.Trajectory(
        step_type=step_types[:-1],
        observation={
            "image": rng.integers(0, 256, (*outer, 4, 5), np.uint8),
            "bits": rng.integers(0, 256, (*outer, 12), np.uint8).view(np.float32),
        },
        action=rng.integers(0, 9, outer, np.int64),
        policy_info=(),
        next_step_type=step_types[1:],
        reward=rng.normal(size=outer).astype(np.float32),
        discount=np.ones(outer, np.float32),
    )


def part(frames, *key):
    return tf.nest.map_structure(lambda leaf: leaf[key], frames)


@pytest.mark.parametrize(
    ("length", "stride", "batch_size", "rollouts"),
    [
        (6, 5, 3, [20, 20]),
        (2, 1, 3, [1, 7, 2]),
        (4, 4, 2, [8, 3, 8]),
        (3, 7, 2, [5, 5, 5, 5]),
        (6, 2, 1, [4, 4, 4]),
        (300, 100, 2, [250, 250, 250]),
    ],
)
def test_items_are_those_of_an_observer_for_each_environment(
    client, length, stride, batch_size, rollouts
):
    frames = make_frames(sum(rollouts), batch_size)
    observers = [
        replay_buffers.ReverbTrajectorySequenceObserver(client, "rows", length, stride)
        for _ in range(batch_size)
    ]
    for time in range(sum(rollouts)):
        for row, observer in enumerate(observers):
            observer(part(frames, time, row))
            # So the items of all writers come in the order of their creation.
            observer.flush()
    observer = reverb_rollouts.ReverbRolloutObserver(
        client,
        "rollouts",
        length,
        stride,
        batch_size=batch_size,
        rollout_length=max(rollouts),
    )
    start = 0
    for count in rollouts:
        observer(part(frames, slice(start, start + count)))
        start += count
    observer.flush()
    counters = []
    for name in ("rows", "rollouts"):
        info = client.server_info()[name]
        stats = info.rate_limiter_info.insert_stats.completed
        counters.append((info.current_size, stats))
    items = drain(client, "rows")
    assert len(items) == batch_size * ((sum(rollouts) - length) // stride + 1)
    assert counters == [(len(items), len(items))] * 2
    assert drain(client, "rollouts") == items


def break_connection(observer):
    link = observer._writer._stream._link
    with contextlib.suppress(OSError, AttributeError):  # It is being made anew.
        link._stream._socket.shutdown(socket.SHUT_RDWR)


def test_items_go_in_once_when_connections_break(client):
    frames = make_frames(400, 3)
    expected = []
    for name in ("rows", "rollouts"):
        observer = reverb_rollouts.ReverbRolloutObserver(
            client, name, 6, 5, batch_size=3, rollout_length=10
        )
        for number in range(40):
            observer(part(frames, slice(10 * number, 10 * number + 10)))
            if name == "rollouts" and number % 7 == 3:
                break_connection(observer)
        observer.flush()
        expected.append(drain(client, name))
    assert len(expected[0]) == 3 * 79
    assert expected[0] == expected[1]


def test_a_full_table_holds_items_back_until_there_are_samples(client):
    frames = make_frames(5, 3)
    observer = reverb_rollouts.ReverbRolloutObserver(
        client, "small", 2, 1, batch_size=3, rollout_length=5
    )
    observer(frames)
    with pytest.raises(errors.DeadlineExceededError, match="Flush call did not"):
        observer.flush(timeout_ms=50)
    assert client.server_info()["small"].current_size == 2
    break_connection(observer)
    samples = client.sample("small", 12, emit_timesteps=False)
    rewards = [sample.data[5].tolist() for sample in samples]
    observer.flush()
    assert rewards == [
        frames.reward[t : t + 2, row].tolist() for t in range(4) for row in range(3)
    ]


def test_what_does_not_fit_is_refused(client):
    def make(table, **changed):
        settings = {"batch_size": 2, "rollout_length": 4, **changed}
        return reverb_rollouts.ReverbRolloutObserver(client, table, 2, 2, **settings)

    with pytest.raises(ValueError, match="rollout_length: expected an integer of at"):
        make("rollouts", rollout_length=0)
    with pytest.raises(ValueError, match="priority: expected a finite number"):
        make("rollouts", priority=-1.0)
    observer = make("rollouts")
    for shape, other in (((5, 2), (5, 2)), ((4, 3), (4, 3)), ((4,), (4,))):
        with pytest.raises(ValueError, match=r"expected \[N, 2\] with one N of at"):
            observer([np.zeros(shape), np.zeros(other)])
    with pytest.raises(ValueError, match=r"outer dimensions \[\(3, 2\), \(4, 2\)\]"):
        observer([np.zeros([3, 2]), np.zeros([4, 2])])
    good = [np.ones([4, 2, 3], np.float32), np.ones([4, 2], np.int64)]
    with pytest.raises(ValueError, match="inconsistent with the table signature"):
        make("signed")(good[::-1])
    observer = make("signed")
    observer([tf.constant(leaf) for leaf in good])
    observer.flush()
    assert len(drain(client, "signed")) == 4
    observer.close()
    with pytest.raises(RuntimeError, match="Close has been called"):
        observer(good)


@pytest.mark.slow
def test_the_same_seed_makes_the_same_items(client):
    found = []
    for name in ("rows", "rollouts"):
        environment = native.load("CartPole-v1", batch_size=3, seed=1)
        agent = KINDS["A2CAgent"].make(
            environment.time_step_spec(), environment.action_spec()
        )
        loop = train.ActorLoop(environment, agent, seed=2)
        observer = reverb_rollouts.ReverbRolloutObserver(
            client, name, 4, 3, batch_size=3, rollout_length=15
        )
        for _ in range(4):
            observer(loop.collect_frames(15))
        observer.flush()
        found.append(drain(client, name))
    assert len(found[0]) == 3 * 19
    assert found[0] == found[1]
