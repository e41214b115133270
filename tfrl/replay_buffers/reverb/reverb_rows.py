"""Writes batches of frames to a replay server, and stacks sampled items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrl.replay_buffers import batch_check

if TYPE_CHECKING:
    from tfrl import replay_service

from tfrl.typing import types


class Rows:
    """Passes each row of a batch to its own observer."""

    def __init__(
        self,
        make_observer: Callable[[replay_service.Client], Any],
        client: replay_service.Client,
        data_spec: types.NestedTensorSpec,
        batch_size: int,
    ) -> None:
        """Makes the observers.

        Args:
          make_observer: A function that makes an observer from the client.
          client: The client of the server to write to.
          data_spec: A nest of specs of one frame.
          batch_size: The number of rows of a batch.
        """
        self.check = batch_check.BatchCheck(data_spec, batch_size)
        self._pack = _packing(data_spec)
        self._observers = [make_observer(client) for _ in range(batch_size)]
        self._number = 0

    def add(self, *leaves: np.ndarray) -> list[int]:
        """Writes a batch of leaves `[B, ...]`; returns its number since `reset`."""
        for row, observer in enumerate(self._observers):
            observer(self._pack(iter([leaf[row] for leaf in leaves])))
        self._number += 1
        return [self._number - 1]

    def flush(self, timeout_ms: int | None = None) -> None:
        """Waits until the server has all items.

        Args:
          timeout_ms: The number of milliseconds to wait for the items of each row; None
            for no limit.

        Raises:
          DeadlineExceededError: If time is up first. The items are inserted later.
        """
        for observer in self._observers:
            observer.flush(timeout_ms)

    def reset(self) -> None:
        """Drops frames that are not part of an item yet."""
        self._number = 0
        for observer in self._observers:
            observer.reset(write_cached_steps=False)


def _packing(spec: Any) -> Callable[[Iterator[Any]], Any]:
    """Returns a function that packs flat leaves into a nest like `spec`.

    The specs of TensorFlow's functions have only these kinds of nodes: mappings, tuples
    and lists.
    """
    if isinstance(spec, Mapping):
        keys = sorted(spec)
        values = [_packing(spec[key]) for key in keys]
        return lambda leaves: {
            key: value(leaves) for key, value in zip(keys, values, strict=True)
        }
    if isinstance(spec, tuple | list):
        parts = [_packing(part) for part in spec]
        make: Any = getattr(type(spec), "_make", type(spec))
        return lambda leaves: make([part(leaves) for part in parts])
    return next


def stack_padded(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Stacks arrays `[T, ...]` of any lengths; shorter arrays are padded with zeros."""
    length = max(len(array) for array in arrays)
    stacked = np.zeros([len(arrays), length, *arrays[0].shape[1:]], arrays[0].dtype)
    for row, array in zip(stacked, arrays, strict=True):
        row[: len(array)] = array
    return stacked
