"""Checkpoints that earlier versions wrote are still read."""

import pathlib
import zipfile

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_service import checkpointers, item_selectors, rate_limiters
from tfrl.replay_service.server import Server
from tfrl.replay_service.table import Table
from tfrl.specs import tensor_spec

# Written by commit 164c8db: the last five of seven pairs of steps in a prioritized
# table, and three single steps in a heap, the last of which was sampled once. Step i
# is {"b": [i, i, i], "a": i / 2, "r": i}, and an item's priority is its last step.
OLD = pathlib.Path(__file__).with_name("data") / "checkpoint.zip"

SIGNATURE = (
    {
        "b": tensor_spec.BoundedTensorSpec([2, 3], tf.uint8, 0, 7, "b"),
        "a": [tf.TensorSpec([None], tf.bfloat16), ()],
    },
    tf.TensorSpec([2], tf.float32, "reward"),
)


@pytest.fixture
def client(tmp_path):
    with zipfile.ZipFile(OLD) as archive:
        archive.extractall(tmp_path)
    tables = [
        Table(
            "prioritized",
            item_selectors.Prioritized(0.5),
            item_selectors.Fifo(),
            5,
            rate_limiters.MinSize(1),
            signature=SIGNATURE,
        ),
        Table(
            "heap",
            item_selectors.MaxHeap(),
            item_selectors.Lifo(),
            9,
            rate_limiters.SampleToInsertRatio(2.0, 1, 8.0),
            max_times_sampled=3,
        ),
    ]
    checkpointer = checkpointers.DefaultCheckpointer(str(tmp_path))
    server = Server(tables, checkpointer=checkpointer)
    yield server.localhost_client()
    server.stop()


def test_old_items_have_their_steps_priorities_and_keys(client):
    samples = client.sample("prioritized", 60, emit_timesteps=False)
    found = {int(sample.info.key) & 0xFFFFFFFF: sample for sample in samples}
    assert len(found) == 5
    for sample in found.values():
        last = int(sample.info.priority)
        a, b, reward = sample.data
        np.testing.assert_array_equal(a, np.array([last - 1, last]) / 2)
        assert a.dtype == ml_dtypes.bfloat16
        np.testing.assert_array_equal(b, np.repeat([[last - 1], [last]], 3, axis=1))
        np.testing.assert_array_equal(reward, [last - 1, last])
        weights = np.sqrt(np.arange(3, 8))
        expected = weights[last - 3] / weights.sum()
        np.testing.assert_allclose(sample.info.probability, expected, rtol=1e-12)
    assert sorted(int(s.info.priority) for s in found.values()) == [3, 4, 5, 6, 7]


def test_old_counts_go_on(client):
    info = client.server_info()["heap"]
    assert info.rate_limiter_info.insert_stats.completed == 3
    assert info.rate_limiter_info.sample_stats.completed == 1
    assert info.current_size == 3
    first, second, third = client.sample("heap", 3, emit_timesteps=False)
    assert [int(s.info.times_sampled) for s in (first, second, third)] == [2, 3, 1]
    assert [s.data[0] for s in (first, second, third)] == [6.0, 6.0, 3.0]
    assert first.info.key == 8589934594
