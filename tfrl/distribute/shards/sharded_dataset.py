"""The dataset of a `ShardedClient`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.distribute.shards import batch_shares
from tfrl.replay_service.replay_sample import ReplaySample, SampleInfo
from tfrl.replay_service.sampling import dataset, generator, interrupts
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.distribute.shards import sharded_client


def make(
    client: sharded_client.ShardedClient,
    batch_size: int,
    weighting: batch_shares.Weighting,
    max_in_flight: int | None,
    mixed: bool,
) -> tf.data.Dataset:
    """Returns a dataset of batches; see `ShardedClient.as_dataset`."""
    number_checks.check_sizes(batch_size=batch_size)
    number_checks.check_sizes(optional=True, max_in_flight=max_in_flight)
    batch_shares.check_weighting(weighting)
    signature = client.signature
    if signature is None:
        raise ValueError(
            f"table: {client.table!r} has no signature, expected one, which defines "
            "the dataset's elements; make the table with a signature."
        )
    spec = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([batch_size, *leaf.shape], leaf.dtype),
        ReplaySample(
            SampleInfo(
                *map(tf.TensorSpec, SampleInfo.tf_shapes(), SampleInfo.tf_dtypes())
            ),
            dataset.without_lists(signature),
        ),
    )
    client.check_windows(-(-batch_size // client.num_shards) if mixed else batch_size)
    ahead = max_in_flight
    if ahead is None:
        # A shard that gives whole batches needs room for one batch ahead.
        ahead = batch_size * (3 if mixed else max(3, client.num_shards))
    opener = generator.register(lambda: client.stream(weighting, ahead, mixed=mixed))
    interrupts.WATCH.start()
    variant = generator.batches(
        tf.nest.flatten(spec),
        tf.constant(label(client)),
        tf.constant(client.table),
        tf.constant(json.dumps({"opener": opener})),
        tf.constant(batch_size, tf.int64),
        tf.constant(True),
    )
    return dataset.from_variant(variant, spec)


def label(client: sharded_client.ShardedClient) -> str:
    """Returns the name that stands for a client's address in the records of errors."""
    return f"shards {id(client)}"
