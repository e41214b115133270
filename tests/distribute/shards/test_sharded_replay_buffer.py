"""A learner's loop over two servers."""

import contextlib
import os

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks, replay_buffers, replay_service, train
from tfrl.distribute import ShardedClient, ShardedReplayBuffer
from tfrl.distribute.shards.shard import split_keys
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([3], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
BATCH_SIZE = 8


def make_agent():
    return agents.DqnAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        networks.QNetwork(OBSERVATION, ACTION, fc_layer_params=(4,), seed=1),
        keras.optimizers.SGD(0.1),
    )


@pytest.fixture(scope="module")
def agent():
    return make_agent()


@pytest.fixture(scope="module")
def servers(agent):
    signature = tensor_spec.add_outer_dim(agent.collect_data_spec, 2)
    selectors = replay_service.selectors
    with contextlib.ExitStack() as stack:
        started = []
        for number_of_items in (12, 4):
            tables = [
                replay_service.Table(
                    name,
                    sampler=sampler,
                    remover=selectors.Fifo(),
                    max_size=100,
                    rate_limiter=limiter,
                    signature=signature,
                )
                for name, sampler, limiter in (
                    (
                        "uniform",
                        selectors.Uniform(),
                        replay_service.rate_limiters.MinSize(1),
                    ),
                    (
                        "prioritized",
                        selectors.Prioritized(1.0),
                        replay_service.rate_limiters.MinSize(1),
                    ),
                    (
                        "narrow",
                        selectors.Uniform(),
                        replay_service.rate_limiters.SampleToInsertRatio(1.0, 1, 33.0),
                    ),
                )
            ]
            started.append(replay_service.Server(tables, seed=number_of_items))
            stack.callback(started[-1].stop)
            random = np.random.default_rng(number_of_items)
            client = started[-1].localhost_client()
            with client.trajectory_writer(2) as writer:
                for i in range(number_of_items + 1):
                    writer.append(
                        agent.collect_data_spec._replace(
                            step_type=np.int32(1),
                            observation=random.normal(size=3).astype(np.float32),
                            action=np.int32(i % 2),
                            next_step_type=np.int32(1),
                            reward=np.float32(i),
                            discount=np.float32(0.9),
                        )
                    )
                    if i:
                        frames = tf.nest.map_structure(lambda c: c[-2:], writer.history)
                        for name in ("uniform", "prioritized"):
                            writer.create_item(name, float(i), frames)
        yield started


@pytest.fixture
def addresses(servers):
    return [f"localhost:{server.port}" for server in servers]


def shards_of(keys):
    return np.bincount(split_keys(keys.numpy())[0], minlength=2).tolist()


def test_batches_are_those_of_a_buffer_of_one_server(agent, addresses):
    single = replay_buffers.ReverbReplayBuffer(
        agent.collect_data_spec, "uniform", 2, server_address=addresses[0]
    )
    client = ShardedClient(addresses, "uniform")
    sharded = ShardedReplayBuffer(agent.collect_data_spec, client, 2)
    dataset = sharded.as_dataset(BATCH_SIZE, num_steps=2)
    assert dataset.element_spec == single.as_dataset(BATCH_SIZE).element_spec
    _, info = next(iter(dataset))
    assert shards_of(info.key[:, 0]) == [6, 2]
    np.testing.assert_allclose(info.probability, 1 / 16)
    assert (sharded.num_frames(), sharded.capacity) == (16, 200)
    assert tf.function(sharded.num_frames)() == 16


@pytest.mark.parametrize(
    ("max_weight", "expected"), [(10.0, [1.5**0.5, 0.5**0.5]), (1.0, [1.0, 0.5**0.5])]
)
def test_importance_weights_are_those_of_the_whole_for_equal_shares(
    agent, addresses, max_weight, expected
):
    client = ShardedClient(addresses, "uniform")
    buffer = ShardedReplayBuffer(
        agent.collect_data_spec,
        client,
        2,
        "equal",
        importance_exponent=0.5,
        max_weight=max_weight,
    )
    _, info = next(iter(buffer.as_dataset(BATCH_SIZE)))
    assert shards_of(info.keys) == [4, 4]
    shards = split_keys(info.keys.numpy())[0]
    # Drawn with 1/2 * 1/12 and 1/2 * 1/4.
    np.testing.assert_allclose(info.probabilities, np.array([1 / 24, 1 / 8])[shards])
    # (16 P)^-0.5, with 16 P = 2/3 and 2; at most max_weight.
    np.testing.assert_allclose(info.weights, np.array(expected)[shards], rtol=1e-6)


def test_a_loop_trains_on_all_shards_and_sets_their_priorities(agent, addresses):
    client = ShardedClient(addresses, "prioritized")
    buffer = ShardedReplayBuffer(
        agent.collect_data_spec, client, 2, "mass", BATCH_SIZE, importance_exponent=1.0
    )
    assert buffer.is_prioritized
    before = [info.total_weight for info in client.table_infos()]
    assert before == [78.0, 10.0]
    loop = train.DatasetLoop(agent, lambda: buffer.as_dataset(BATCH_SIZE), buffer)
    loop.run(20)
    after = [info.total_weight for info in client.table_infos()]
    assert all(a != b for a, b in zip(after, before, strict=True))


def test_a_checkpoint_is_one_of_each_server(agent, addresses, tmp_path):
    client = ShardedClient(addresses, "uniform")
    buffer = ShardedReplayBuffer(agent.collect_data_spec, client, 2)
    before = client.checkpoint()
    path = tf.train.Checkpoint(buffer=buffer).save(str(tmp_path / "learner"))
    after = client.checkpoint()
    assert tf.train.Checkpoint(buffer=buffer).restore(path) is not None
    assert all(map(os.path.exists, after))
    assert len({*before, *after}) == 4


def test_what_does_not_fit_is_refused(agent, addresses):
    client = ShardedClient(addresses, "uniform")
    with pytest.raises(ValueError, match="data_spec: the signature of table 'uniform'"):
        ShardedReplayBuffer(agent.collect_data_spec, client, 3)
    buffer = ShardedReplayBuffer(agent.collect_data_spec, client, 2)
    with pytest.raises(ValueError, match="num_steps: got 1, expected the tables' seq"):
        buffer.as_dataset(4, num_steps=1)
    with pytest.raises(
        NotImplementedError, match="as_dataset: without sample_batch_size"
    ):
        buffer.as_dataset()
    narrow = ShardedClient(addresses, "narrow")
    buffer = ShardedReplayBuffer(agent.collect_data_spec, narrow, 2)
    with pytest.raises(ValueError, match="a window of 66; expected at least 96"):
        buffer.as_dataset(64)
