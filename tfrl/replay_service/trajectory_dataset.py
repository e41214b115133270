"""A `tf.data.Dataset` of whole sampled items."""

from __future__ import annotations

from tfrl.replay_service.sampling.dataset import SamplingDataset


class TrajectoryDataset(SamplingDataset):
    """Sampled items of a table, as a `tf.data.Dataset` of `ReplaySample`s.

    An element holds the data of one item: `[T, ...]` per column, without the first
    dimension if the column is a single step. The fields of `info` are scalars. Lists in
    the structure become tuples.

    `batch` fetches whole batches from the server. This is many times faster than
    batching the result of another transformation, so call `batch` first.
    """
