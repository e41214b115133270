"""Datasets of the items that adders write to a replay server, as in Acme."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl import replay_service
from tfrl.acme.adders.reverb import DEFAULT_PRIORITY_TABLE


def make_reverb_dataset(
    server_address: str,
    batch_size: int | None = None,
    prefetch_size: int | None = None,
    table: str = DEFAULT_PRIORITY_TABLE,
    max_in_flight_samples_per_worker: int | None = None,
    postprocess: Callable[[Any], Any] | None = None,
) -> tf.data.Dataset:
    """Returns a dataset of the samples of a table that has a signature.

    Args:
      server_address: "host:port".
      batch_size: The number of items of a batch; None for single items.
      prefetch_size: The number of batches to fetch before they are used; None for none.
      table: The name of the table.
      max_in_flight_samples_per_worker: See `replay_service.TrajectoryDataset`; by
        default two batches, or 100 items without batches.
      postprocess: Changes a sample before it goes into a batch. Without it, whole
        batches are fetched from the server, which is many times faster; so change
        batches instead, with the `map` of the result.

    Returns:
      A dataset of `ReplaySample`s. `adders.to_experience(sample.data)` is the
      experience that an agent trains on.

    Raises:
      ReplayUnavailable: If no server answers.
      ValueError: If there is no such table, or it has no signature.
    """
    if max_in_flight_samples_per_worker is None:
        max_in_flight_samples_per_worker = 2 * batch_size if batch_size else 100
    dataset: tf.data.Dataset = replay_service.TrajectoryDataset.from_table_signature(
        server_address, table, max_in_flight_samples_per_worker
    )
    if postprocess is not None:
        dataset = dataset.map(postprocess)
    if batch_size is not None:
        dataset = dataset.batch(batch_size, drop_remainder=True)
    return dataset if prefetch_size is None else dataset.prefetch(prefetch_size)
