"""The samples that a table returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Samples(NamedTuple):
    """Sampled items, in the order in which they were drawn.

    Attributes:
      keys: `[N]` uint64.
      probabilities: `[N]` float64, the probability of the item when it was drawn; 1 for
        deterministic samplers.
      table_sizes: `[N]` int64, the size of the table when the item was drawn.
      priorities: `[N]` float64.
      times_sampled: `[N]` int32, including this sample.
      payloads: `[N, 2]` int32.
      removed: `[K, 2]` int32, the payloads of the items that these samples deleted.
    """

    keys: np.ndarray
    probabilities: np.ndarray
    table_sizes: np.ndarray
    priorities: np.ndarray
    times_sampled: np.ndarray
    payloads: np.ndarray
    removed: np.ndarray


def pairs(payloads: np.ndarray) -> np.ndarray:
    """Converts payloads from `[N]` int64 to `[N, 2]` int32."""
    return payloads.view(np.int32).reshape(-1, 2)


def joined(parts: Sequence[Samples]) -> Samples:
    """Concatenates samples."""
    if len(parts) == 1:
        return parts[0]
    return Samples(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


#: The payloads of no items.
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
