"""Writes frames or rollouts of a batch of environments to a replay server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tree

from tfrl.replay_buffers import batch_check
from tfrl.typing import types
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl import replay_service


class ReverbRolloutObserver:
    """Writes the sequences of all environments of a batch, by one writer.

    The items are the same, byte for byte, as if a `ReverbTrajectorySequenceObserver`
    for each environment had written them: sequences of `sequence_length` successive
    frames of one environment, each beginning `stride_length` frames after the one
    before. They may cross the ends of episodes and of rollouts, and frames in several
    items are sent and stored once. But there is one connection for all environments,
    and no work in Python for each frame.

    Items are inserted in the order of their last frames, and items with the same last
    frame in the order of the environments. The server counts all items as one episode.

    Only one thread may use an observer at a time.
    """

    def __init__(
        self,
        py_client: replay_service.Client,
        table_name: str,
        sequence_length: int,
        stride_length: int,
        *,
        batch_size: int,
        rollout_length: int,
        priority: float = 1.0,
    ) -> None:
        """Opens a writer.

        Args:
          py_client: The client of the server.
          table_name: The table to write to.
          sequence_length: The number of frames in an item (`T`).
          stride_length: The number of frames from the start of one item to the start of
            the next.
          batch_size: The number of environments (`B`).
          rollout_length: The largest number of frames in a rollout (`N`).
          priority: The priority of new items.

        Raises:
          ValueError: If a length or size is not positive, or the priority is not a
            finite number of at least 0.
          replay_service.ReplayUnavailable: If no server answers.
        """
        number_checks.check_sizes(
            sequence_length=sequence_length,
            stride_length=stride_length,
            batch_size=batch_size,
            rollout_length=rollout_length,
        )
        number_checks.check_number("priority", priority, 0, remedy="1 is usual")
        self._table_name = table_name
        self._sequence_length = sequence_length
        self._stride_length = stride_length
        self._batch_size = batch_size
        self._rollout_length = rollout_length
        self._priority = float(priority)
        # The number of frames of an environment since the first frame of the next item;
        # negative if that frame is yet to come.
        self._pending = 0
        self._writer = py_client.trajectory_writer(
            num_keep_alive_refs=(sequence_length + rollout_length) * batch_size
        )

    def __call__(self, rollout: Any) -> None:
        """Writes the items that a rollout completes; never waits for the server.

        Args:
          rollout: A nest, such as a `Trajectory`, of arrays or eager tensors `[N, B,
            ...]`: successive frames, which follow the frames of the rollout before. The
            observer keeps the arrays, so do not change them afterwards.

        Raises:
          ValueError: If an array is not `[N, B, ...]`, or N is larger than
            `rollout_length`, or the items do not match the table's signature.
          Exception: The error with which the server refused an earlier item.
        """
        leaves = [np.asarray(leaf) for leaf in tree.flatten(rollout)]
        shapes = {leaf.shape[:2] for leaf in leaves}
        shape = min(shapes, default=())
        if (
            len(shapes) > 1
            or shape[1:] != (self._batch_size,)
            or shape[0] > self._rollout_length
        ):
            raise ValueError(
                f"rollout: got arrays of the outer dimensions {sorted(shapes)}, "
                f"expected [N, {self._batch_size}] with one N of at most "
                f"{self._rollout_length}; give the observer the environment's "
                "batch_size and the length of the longest rollout."
            )
        # The frames of one time step come before the frames of the next one.
        self._writer.extend([leaf.reshape(-1, *leaf.shape[2:]) for leaf in leaves])
        self._pending += shape[0]
        self._write_items()

    def flush(self, timeout_ms: int | None = None) -> None:
        """Waits until the server has all items.

        Args:
          timeout_ms: The number of milliseconds to wait; None for no limit.

        Raises:
          DeadlineExceededError: If time is up first. The items are inserted later.
          ReplayUnavailable: If the connection was lost and could not be made again.
          Exception: The error with which the server refused an item.
        """
        self._writer.flush(timeout_ms=timeout_ms)

    def close(self) -> None:
        """Sends the remaining items, waits briefly for the server, and disconnects.

        Frames that belong to no item are dropped.
        """
        self._writer.close()

    def _write_items(self) -> None:
        """Creates the items whose frames are complete."""
        excess = self._pending - self._sequence_length
        if excess < 0:
            return
        size, stride = self._batch_size, self._stride_length
        columns = self._writer.history
        first = len(columns[0]) - self._pending * size
        last = first + (self._sequence_length - 1) * size
        beginnings = np.arange(0, excess + 1, stride)
        shifts = beginnings[:, None] * size + np.arange(size)
        self._writer.create_items(
            self._table_name,
            self._priority,
            [column[first : last + 1 : size] for column in columns],
            shifts.reshape(-1),
        )
        self._pending -= len(beginnings) * stride


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
