"""Tables through which processes of a run exchange messages, without TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrl import replay_service
from tfrl.specs import array_spec

_LEAST_BYTES = 1024


def make_table(
    name: str, max_size: int, signature: Any, max_times_sampled: int = 1
) -> replay_service.Table:
    """Makes a table that returns its messages in order.

    Args:
      name: The name of the table.
      max_size: The largest number of waiting messages; a new message then replaces the
        oldest.
      signature: The nest of specs of a message. The server refuses any other.
      max_times_sampled: The number of reads after which a message is removed; 0 keeps
        it.
    """
    return replay_service.Table(
        name,
        sampler=replay_service.selectors.Fifo(),
        remover=replay_service.selectors.Fifo(),
        max_size=max_size,
        max_times_sampled=max_times_sampled,
        rate_limiter=replay_service.rate_limiters.MinSize(1),
        signature=signature,
    )


def bytes_spec() -> array_spec.ArraySpec:
    """Returns the spec of the messages that `padded` makes."""
    return array_spec.ArraySpec((None,), np.uint8)


def padded(data: bytes, fill: bytes) -> np.ndarray:
    """Returns bytes as an array of uint8, filled up to a power of two.

    A server keeps separate storage for each shape, so there should be few shapes.

    Args:
      data: The bytes.
      fill: The byte with which to fill the array.
    """
    size = max(_LEAST_BYTES, 1 << (len(data) - 1).bit_length())
    return np.frombuffer(data.ljust(size, fill), np.uint8)
