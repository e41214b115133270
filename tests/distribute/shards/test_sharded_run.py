"""A learner's loop whose servers are killed while it trains."""

import contextlib
import os
import signal
import threading
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks, replay_service, train
from tfrl.distribute import HomeShard, ShardedClient, ShardedReplayBuffer
from tfrl.distribute.shards import limiter_windows
from tfrl.distribute.shards.shard import split_keys
from tfrl.replay_service import checkpointers, rate_limiters
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([3], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
# The last number is in seconds.
BATCH_SIZE, RATIO, PATIENCE = 16, 4.0, 120.0


def make_agent():
    return agents.DqnAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        networks.QNetwork(OBSERVATION, ACTION, fc_layer_params=(8,), seed=1),
        keras.optimizers.SGD(0.01),
    )


class Actor(threading.Thread):
    """Numbers its frames and writes them to its home shard until it is stopped."""

    def __init__(self, client, name, frame):
        super().__init__(name=name, daemon=True)
        self.home = HomeShard(client, name, lambda c: c.trajectory_writer(2))
        self._frame = frame
        self._number = 0
        self._stopped = threading.Event()

    def run(self):
        while not self._stopped.is_set():
            self._number += 1
            self.home.write(self._write)
        self.home.write(lambda writer: writer.close())

    def stop(self):
        self._stopped.set()
        self.join(PATIENCE)
        assert not self.is_alive()

    def _write(self, writer):
        writer.append(self._frame._replace(reward=np.float32(self._number)))
        # A new writer has no step of before.
        if writer.episode_steps > 1:
            columns = tf.nest.map_structure(lambda column: column[-2:], writer.history)
            writer.create_item("t", 1.0, columns)
        with contextlib.suppress(replay_service.errors.DeadlineExceededError):
            writer.flush(block_until_num_items=16, timeout_ms=200)


def make_frame(agent):
    return agent.collect_data_spec._replace(
        step_type=np.int32(1),
        observation=np.ones(3, np.float32),
        action=np.int32(0),
        next_step_type=np.int32(1),
        discount=np.float32(0.9),
    )


def make_table(agent):
    limiter = limiter_windows.divide(
        rate_limiters.SampleToInsertRatio(RATIO, 64, 512.0),
        2,
        samples_per_draw=3 * BATCH_SIZE,
    )
    return replay_service.Table(
        "t",
        sampler=replay_service.selectors.Uniform(),
        remover=replay_service.selectors.Fifo(),
        max_size=10_000,
        rate_limiter=limiter,
        signature=tensor_spec.add_outer_dim(agent.collect_data_spec, 2),
    )


def number_of_shards(iterator):
    """Returns how many shards have given the next batch."""
    keys = next(iterator)[1].key[:, 0].numpy()
    return len(set(split_keys(keys)[0].tolist()))


def train_until(loop, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        loop.run(20)


def check_pacing(client):
    """Checks each living server's counts against its limiter's window."""
    for info in client.table_infos():
        limiter = info.rate_limiter_info
        inserts, samples, _ = info.counts
        least = min(limiter.min_diff, RATIO * inserts)
        assert least <= RATIO * inserts - samples <= limiter.max_diff


@pytest.mark.slow
def test_training_goes_on_while_a_shard_is_dead_and_uses_it_again(tmp_path):
    agent = make_agent()
    frame, table = make_frame(agent), make_table(agent)

    def start(shard):
        checkpointer = checkpointers.DefaultCheckpointer(str(tmp_path / str(shard)))
        return replay_service.Server([table], checkpointer=checkpointer)

    servers = [start(shard) for shard in range(2)]
    book = [f"localhost:{server.port}" for server in servers]
    client = ShardedClient(lambda: list(book), "t", timeout=1.0)
    actors = [Actor(client, f"actor {i}", frame) for i in range(4)]
    assert {actor.home.shard for actor in actors} == {0, 1}
    for actor in actors:
        actor.start()
    buffer = ShardedReplayBuffer(agent.collect_data_spec, client, 2)
    loop = train.DatasetLoop(agent, lambda: buffer.as_dataset(BATCH_SIZE), buffer)
    iterator = iter(buffer.as_dataset(BATCH_SIZE))
    train_until(loop, lambda: number_of_shards(iterator) == 2)
    assert all(map(os.path.exists, client.checkpoint()))
    check_pacing(client)

    os.kill(servers[0].pid, signal.SIGSTOP)
    train_until(loop, lambda: number_of_shards(iterator) == 1)
    os.kill(servers[0].pid, signal.SIGCONT)
    train_until(loop, lambda: number_of_shards(iterator) == 2)

    os.kill(servers[1].pid, signal.SIGKILL)
    train_until(loop, lambda: number_of_shards(iterator) == 1)
    train_until(loop, lambda: {actor.home.shard for actor in actors} == {0})

    servers[1] = start(1)
    book[1] = f"localhost:{servers[1].port}"
    assert servers[1].localhost_client().server_info()["t"].current_size >= 32
    # The next run of an actor goes home.
    moved = next(actor for actor in actors if actor.home.moves)
    actors.append(Actor(client, moved.name, frame))
    assert actors[-1].home.shard == 1
    actors[-1].start()
    train_until(loop, lambda: number_of_shards(iterator) == 2)
    check_pacing(client)
    for actor in actors:
        actor.stop()
    client.close()
    for server in servers:
        server.stop()
