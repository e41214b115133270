"""Keys of items that carry the number of the replay server that holds the item.

A server's key has the number of the item's insert in its upper 32 bits and the item's
row in the lower 32, see `replay_service.engine.tables.columns`. A table of at most
`MOST_ITEMS` items leaves the upper 8 bits of the row at zero. A client puts the number
of the shard there when it receives the key and takes it away when it sends the key. So
servers, their messages and their checkpoints know nothing of shards.
"""

from __future__ import annotations

import numpy as np

MOST_SHARDS = 256
# A table has slightly more rows than items.
MOST_ITEMS = (1 << 24) - 1024

_SHIFT = np.uint64(24)
_MASK = np.uint64((MOST_SHARDS - 1) << 24)


def tagged(keys: np.ndarray, shard: int) -> np.ndarray:
    """Puts the number of a server's shard into its keys, uint64 `[N]`.

    Args:
      keys: The keys that the server has sent, uint64 `[N]`.
      shard: The number of the shard, below `MOST_SHARDS`.
    """
    return keys | np.uint64(shard) << _SHIFT


def split(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the shard of each key, int64 `[N]`, and the server's key, uint64 `[N]`.

    Args:
      keys: uint64 `[N]`, results of `tagged`.
    """
    keys = np.asarray(keys, np.uint64)
    return ((keys & _MASK) >> _SHIFT).astype(np.int64), keys & ~_MASK
