"""Passes the rows of batched trajectories to observers of single environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfrl.utils import nest_utils, number_checks


class BatchedObserverUnbatching:
    """Passes each row of a batched trajectory to its own observer.

    This is for observers that record one environment, such as `TFRecordObserver` in
    `py_mode`. Row `i` always goes to observer `i`, so each observer gets whole
    episodes.
    """

    def __init__(
        self,
        create_delegated_observer_fn: Callable[[], Callable[[Any], Any]],
        batch_size: int,
    ):
        """Makes the observers.

        Args:
          create_delegated_observer_fn: Called `batch_size` times; returns an observer
            of a trajectory without batch dimension.
          batch_size: The number of rows of a batched trajectory.

        Raises:
          ValueError: If `batch_size` is not positive.
        """
        number_checks.check_integer(
            "batch_size", batch_size, 1, remedy="give the environment's batch size"
        )
        self._delegated_observers = [
            create_delegated_observer_fn() for _ in range(batch_size)
        ]

    def __call__(self, batched_trajectory: Any) -> None:
        """Passes on the rows of a nest of arrays or eager tensors `[B, ...]`.

        Raises:
          ValueError: If the number of rows differs from the number of observers.
        """
        rows = nest_utils.unstack_nested_arrays(batched_trajectory)
        if len(rows) != len(self._delegated_observers):
            raise ValueError(
                f"batched_trajectory: got {len(rows)} rows, expected "
                f"{len(self._delegated_observers)}, one for each observer; make "
                "BatchedObserverUnbatching with the batch size of the environment."
            )
        for observer, row in zip(self._delegated_observers, rows, strict=True):
            observer(row)
