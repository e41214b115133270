"""What a table returns when it is sampled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Samples(NamedTuple):
    """Sampled items, in the order in which they were drawn.

    Attributes:
      keys: `[N]` uint64.
      probabilities: `[N]` float64, of the item among those there were: 1 where the
        sampler leaves no choice.
      table_sizes: `[N]` int64, before the item was deleted, if it was.
      priorities: `[N]` float64.
      times_sampled: `[N]` int32, this time included.
      payloads: `[N, 2]` int32.
      removed: `[K, 2]` int32, the payloads of the items that have been deleted because
        they were sampled for the last time.
    """

    keys: np.ndarray
    probabilities: np.ndarray
    table_sizes: np.ndarray
    priorities: np.ndarray
    times_sampled: np.ndarray
    payloads: np.ndarray
    removed: np.ndarray


def pairs(payloads: np.ndarray) -> np.ndarray:
    """Returns payloads `[N]` int64 as `[N, 2]` int32."""
    return payloads.view(np.int32).reshape(-1, 2)


def joined(parts: Sequence[Samples]) -> Samples:
    """Returns samples, put together."""
    if len(parts) == 1:
        return parts[0]
    return Samples(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


#: No item.
NO_PAYLOADS = np.zeros(0, np.int64)
NOTHING = Samples(
    keys=np.zeros(0, np.uint64),
    probabilities=np.zeros(0),
    table_sizes=np.zeros(0, np.int64),
    priorities=np.zeros(0),
    times_sampled=np.zeros(0, np.int32),
    payloads=pairs(NO_PAYLOADS),
    removed=pairs(NO_PAYLOADS),
)
