"""Frees the memory of a table's former items, in slices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import samples as samples_lib

_SLICE = 1 << 13  # Rows.


def former_payloads(
    former: list[np.ndarray], counts: list[dict[int, int]]
) -> Iterator[np.ndarray]:
    """Yields the payloads of a table's former items, and frees its former memory.

    Args:
      former: The result of `Columns.clear`.
      counts: The result of `EpisodeCounts.clear`.
    """
    keys, payloads = former[:2]
    for start in range(0, keys.size, _SLICE):
        part = slice(start, start + _SLICE)
        yield samples_lib.pairs(payloads[part][keys[part] != columns_lib.NO_KEY])
    del keys, payloads
    for memory in (former, counts):
        while memory:
            memory.pop()
            yield samples_lib.pairs(samples_lib.NO_PAYLOADS)
