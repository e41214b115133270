"""Datasets of time steps."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import replay_service
from tfrl.replay_service import item_selectors, rate_limiters
from tfrl.replay_service.table import Table
from tfrl.replay_service.timestep_dataset import TimestepDataset

STEP = {"x": tf.TensorSpec([3], tf.float32), "y": tf.TensorSpec([], tf.int64)}


@pytest.fixture(scope="module")
def address(start_server):
    tables = [
        Table(
            name=name,
            sampler=item_selectors.Fifo(),
            remover=item_selectors.Fifo(),
            max_size=10,
            rate_limiter=rate_limiters.MinSize(1),
            signature=signature,
        )
        for name, signature in (("steps", STEP), ("triples", None), ("mixed", None))
    ]
    server = start_server(tables)
    client = server.localhost_client()
    client.insert({"x": np.ones(3, np.float32), "y": np.int64(7)}, {"steps": 1.0})
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            writer.append({"x": np.full(3, i, np.float32), "y": np.int64(i)})
        x, y = writer.history["x"], writer.history["y"]
        writer.create_item("triples", 2.0, {"x": x[-3:], "y": y[-3:]})
        writer.create_item("mixed", 2.0, {"x": x[-3:], "y": y[-1:]})
    return f"localhost:{server.port}"


def make(address, table, in_flight=4, **options):
    return TimestepDataset(
        address,
        table,
        tf.nest.map_structure(lambda spec: spec.dtype, STEP),
        tf.nest.map_structure(lambda spec: spec.shape, STEP),
        in_flight,
        **options,
    )


def test_inserted_steps_come_as_they_were(address):
    dataset = TimestepDataset.from_table_signature(address, "steps", 4, max_samples=2)
    assert dataset.element_spec.data == STEP
    steps = [sample.data for sample in dataset]
    assert [step["y"].numpy() for step in steps] == [7, 7]
    np.testing.assert_array_equal(steps[0]["x"], [1.0, 1.0, 1.0])


def test_items_come_step_by_step(address):
    samples = list(make(address, "triples", max_samples=2))
    assert [sample.data["y"].numpy() for sample in samples] == [0, 1, 2, 0, 1, 2]
    assert {sample.info.priority.numpy() for sample in samples} == {2.0}
    assert len({sample.info.key.numpy() for sample in samples}) == 1


def test_batches_go_across_items(address):
    batches = [
        sample.data["y"].numpy().tolist()
        for sample in make(address, "triples", 1, max_samples=2).batch(4)
    ]
    assert batches == [[0, 1, 2, 0], [1, 2]]


def test_columns_of_different_lengths_are_refused(address):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="cannot be decomposed into timesteps"
    ):
        next(iter(make(address, "mixed")))


@pytest.mark.parametrize(
    ("name", "instead"),
    [("ReplayDataset", "TimestepDataset"), ("distributions", "selectors")],
)
def test_a_name_of_the_first_releases_says_what_to_use(name, instead):
    with pytest.raises(AttributeError, match=rf"reverb\.{name}: .* use {instead}"):
        getattr(replay_service, name)
