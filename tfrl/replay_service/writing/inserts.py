"""Inserts single items for `Client.insert`, through a pool of writers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tree

from tfrl.replay_service.trajectory_writer import TrajectoryWriter

_KINDS = 16  # Maximum number of kinds of data (dtypes and shapes) in the pool.
_IDLE = 4  # Maximum number of idle writers for each kind of data.


class ClientInserts:
    """Inserts items from any thread. Concurrent calls do not wait for each other."""

    def __init__(self, make_writer: Callable[[], TrajectoryWriter]):
        """Creates an empty pool.

        Args:
          make_writer: Returns a new writer that keeps one step.
        """
        self._make_writer = make_writer
        self._lock = threading.Lock()
        self._idle: dict[Any, list[TrajectoryWriter]] = {}

    def insert(self, data: Any, priorities: Mapping[str, float]) -> None:
        """Inserts one item; see `Client.insert`."""
        if not priorities:
            raise ValueError("priorities must contain at least one item")
        leaves = [_leaf(value) for value in tree.flatten(data)]
        if not leaves:
            raise ValueError(
                f"data: got {data!r:.200}, which holds no arrays and numbers, expected "
                "at least one."
            )
        kind = tuple((array.dtype, array.shape) for array in leaves)
        writer = self._take(kind)
        writer.append(leaves)
        trajectory = [column[-1:] for column in writer.history]
        try:
            for table, priority in priorities.items():
                writer.create_item(table, priority, trajectory)
        finally:
            writer.end_episode(clear_buffers=False)
        self._keep(kind, writer)

    def after_fork(self) -> None:
        """Abandons the parent's writers and its lock, which may be held."""
        self._lock = threading.Lock()
        self._idle = {}

    def _take(self, kind: Any) -> TrajectoryWriter:
        with self._lock:
            idle = self._idle.get(kind)
            if idle:
                return idle.pop()
        return self._make_writer()

    def _keep(self, kind: Any, writer: TrajectoryWriter) -> None:
        with self._lock:
            if len(self._idle) >= _KINDS and kind not in self._idle:
                self._idle.clear()
            idle = self._idle.setdefault(kind, [])
            if len(idle) < _IDLE:
                idle.append(writer)


def _leaf(value: Any) -> np.ndarray:
    if value is None:
        raise TypeError("data: got None as a leaf, expected arrays and numbers.")
    to_numpy = getattr(value, "numpy", None)
    return np.asarray(to_numpy() if callable(to_numpy) else value)
