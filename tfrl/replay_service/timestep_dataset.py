"""A `tf.data.Dataset` of the time steps of sampled items."""

from __future__ import annotations

from tfrl.replay_service.sampling.dataset import SamplingDataset


class TimestepDataset(SamplingDataset):
    """The time steps of a table's items, as a `tf.data.Dataset` of `ReplaySample`s.

    The steps of an item `[T, ...]` become T consecutive elements `[...]`, each with the
    item's `info`. The elements do not show where an item starts. All columns of an item
    must have the same number of steps.

    The table's signature must describe a single step. `batch` fetches whole batches
    from the server, as with `TrajectoryDataset`.
    """

    _timesteps = True
