"""How many items of a batch each of several replay servers gives.

A shard's share of a batch is a fraction of the whole. Batches have whole rows, so the
remainders are carried to the next batch: over many batches each shard gives exactly its
share, with less variance than if the shard of each row were drawn at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

Weighting = Literal["size", "mass", "equal"]
WEIGHTINGS = ("size", "mass", "equal")


def shares(weighting: Weighting, sizes: Any, masses: Any) -> np.ndarray:
    """Returns the share of each shard in a batch.

    With "size", the share of shard `m` is `n_m / N`, so that uniform shards together
    are a uniform table. With "mass" it is `W_m / W`, where `W_m` is the sum of the
    powers of priorities in shard `m`, so that prioritized shards together are a
    prioritized table; as there, sizes count if all priorities are 0. With "equal", all
    shards that have items give the same.

    Args:
      weighting: "size", "mass" or "equal".
      sizes: `[M]`, the number of items `n_m` of each shard.
      masses: `[M]`, the mass `W_m` of each shard.

    Returns:
      float64 `[M]` of sum 1, with 0 for shards without items; all zeros if no shard has
      any.

    Raises:
      ValueError: If there is no such weighting.
    """
    check_weighting(weighting)
    sizes = np.asarray(sizes, np.float64)
    weights = sizes
    if weighting == "equal":
        weights = (sizes > 0).astype(np.float64)
    elif weighting == "mass" and np.any(masses):
        weights = np.asarray(masses, np.float64)
    total = weights.sum()
    return weights / total if total > 0 else weights


def check_weighting(weighting: str) -> None:
    """Raises a ValueError if there is no such weighting."""
    if weighting not in WEIGHTINGS:
        raise ValueError(
            f"weighting: got {weighting!r}, expected one of {', '.join(WEIGHTINGS)}; "
            "take 'size' for uniform tables and 'mass' for prioritized ones."
        )


def rounded(quotas: Sequence[float] | np.ndarray, count: int) -> np.ndarray:
    """Rounds quotas to numbers of rows whose sum is `count`.

    Each quota is rounded down first. Rows that are left go to the largest remainders;
    rows that are too many come from the smallest.

    Args:
      quotas: `[M]`; shards with `-inf` give nothing, and at least one is finite.
      count: The number of rows.

    Returns:
      int64 `[M]`, none negative.
    """
    quotas = np.asarray(quotas, np.float64)
    rows = np.floor(np.maximum(quotas, 0.0)).astype(np.int64)
    while rows.sum() < count:
        rows[np.argmax(quotas - rows)] += 1
    while rows.sum() > count:
        rows[np.argmin(np.where(rows > 0, quotas - rows, np.inf))] -= 1
    return rows


class Apportionment:
    """Divides batch after batch among shards, and carries what they owe.

    What a shard owes is limited to one batch, so a shard that returns after a long time
    is not sampled alone to make up for it.
    """

    def __init__(self, num_shards: int) -> None:
        """Creates an apportionment in which no shard owes anything."""
        self._owed = np.zeros(num_shards)

    def split(self, share: np.ndarray, count: int) -> np.ndarray:
        """Returns how many rows each shard shall give.

        Args:
          share: `[M]`, the shares, of sum 1. Shards with 0 give nothing.
          count: The number of rows in the batch.

        Returns:
          int64 `[M]` of sum `count`.
        """
        return rounded(np.where(share > 0, self._owed + count * share, -np.inf), count)

    def settle(self, share: np.ndarray, drawn: np.ndarray) -> None:
        """Counts a batch.

        Args:
          share: `[M]`, the shares that the batch was divided by.
          drawn: `[M]`, how many rows each shard has given.
        """
        count = drawn.sum()
        self._owed = np.clip(self._owed + count * share - drawn, -count, count)
