"""A `tf.data.Dataset` of whole items."""

from __future__ import annotations

from tfrl.replay_service.sampling.dataset import SamplingDataset


class TrajectoryDataset(SamplingDataset):
    """Items of a table, as a `tf.data.Dataset` of `ReplaySample`s.

    The data of an element are those of one item: `[T, ...]`, or without the first
    dimension where the item was made with a single step of a column. The fields of
    `info` are scalars. Lists in the nest become tuples.

    `batch` fetches whole batches from the server, which is many times faster than
    batching what another transformation returns: call it first.
    """
