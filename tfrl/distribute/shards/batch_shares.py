"""Divides batches among several replay servers.

A shard's share of a batch is a fraction of the whole. Batches have whole rows, so the
remainders are carried to the next batch: over many batches each shard gives exactly its
share, with less variance than if the shard of each row were drawn at random.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Literal

# Numbers of a few shards are lists: arrays of so few numbers take longer.
Weighting = Literal["size", "mass", "equal"]
WEIGHTINGS = ("size", "mass", "equal")


def shares(
    weighting: Weighting, sizes: Sequence[int], masses: Sequence[float]
) -> list[float]:
    """Returns the share of each shard in a batch.

    With "size", the share of shard `m` is `n_m / N`, so that uniform shards together
    act like one uniform table. With "mass" it is `W_m / W`, where `W_m` is the sum of
    the powers of priorities in shard `m`, so that prioritized shards together act like
    one prioritized table; like in such a table, the sizes decide if all priorities are
    0. With "equal", all shards that have items give the same.

    Args:
      weighting: "size", "mass" or "equal".
      sizes: The number of items `n_m` of each shard.
      masses: The mass `W_m` of each shard.

    Returns:
      Numbers whose sum is 1, with 0 for shards without items; all zeros if no shard has
      items.

    Raises:
      ValueError: If there is no such weighting.
    """
    check_weighting(weighting)
    weights: Sequence[float] = sizes
    if weighting == "equal":
        weights = [size > 0 for size in sizes]
    elif weighting == "mass" and any(masses):
        weights = masses
    total = sum(weights)
    return [weight / total for weight in weights] if total else [0.0] * len(sizes)


def check_weighting(weighting: str) -> None:
    """Raises a ValueError if there is no such weighting."""
    if weighting not in WEIGHTINGS:
        raise ValueError(
            f"weighting: got {weighting!r}, expected one of {', '.join(WEIGHTINGS)}; "
            "take 'size' for uniform tables and 'mass' for prioritized ones."
        )


def rounded(quotas: Sequence[float | None], count: int) -> list[int]:
    """Rounds quotas to numbers of rows whose sum is `count`.

    Each quota is rounded down first. Missing rows are added where the remainders are
    largest; surplus rows are taken away where they are smallest.

    Args:
      quotas: The quota of each shard; None for a shard that gives nothing. At least one
        is a number.
      count: The number of rows.

    Returns:
      Numbers that are not negative.
    """
    rows = [math.floor(max(quota or 0.0, 0.0)) for quota in quotas]
    left = count - sum(rows)
    step = 1 if left > 0 else -1
    # The first shard of the queue is the next one that gets, or loses, a row.
    queue = [
        (step * (rows[m] - quota), m)
        for m, quota in enumerate(quotas)
        if quota is not None and (step > 0 or rows[m])
    ]
    heapq.heapify(queue)
    for _ in range(abs(left)):
        remainder, m = queue[0]
        rows[m] += step
        if step > 0 or rows[m]:
            heapq.heapreplace(queue, (remainder + 1.0, m))
        else:
            heapq.heappop(queue)
    return rows


class Apportionment:
    """Divides batches among shards, and carries the remainders to later batches.

    A shard's debt is limited to two batches, so that a shard that returns after a long
    time is not the only one sampled until it has caught up.
    """

    def __init__(self, num_shards: int, mixed: bool = True) -> None:
        """Creates an apportionment in which no shard owes anything.

        Args:
          num_shards: The number of shards.
          mixed: Whether a batch is divided. If not, the shard with the largest debt
            gives the whole batch.
        """
        self._owed = [0.0] * num_shards
        self._mixed = mixed

    def split(self, share: Sequence[float], count: int) -> list[int]:
        """Returns the number of rows that each shard has to give.

        Args:
          share: The shares, whose sum is 1. Shards with a share of 0 give nothing.
          count: The number of rows in the batch.

        Returns:
          Numbers whose sum is `count`.
        """
        quotas = [
            owed + count * s if s else None
            for owed, s in zip(self._owed, share, strict=True)
        ]
        if self._mixed:
            return rounded(quotas, count)
        given = [-math.inf if quota is None else quota for quota in quotas]
        first = given.index(max(given))
        return [count * (m == first) for m in range(len(given))]

    def settle(self, share: Sequence[float], drawn: Sequence[int]) -> None:
        """Records the rows of a batch that the shards have given.

        Args:
          share: The shares by which the batch was divided.
          drawn: The number of rows that each shard has given.
        """
        count = sum(drawn)
        self._owed = [
            min(max(owed + count * s - n, -2 * count), 2 * count)
            for owed, s, n in zip(self._owed, share, drawn, strict=True)
        ]
