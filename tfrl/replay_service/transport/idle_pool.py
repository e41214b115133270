"""Connections that no call uses now, kept for later calls in any thread."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

_MOST = 4  # Idle connections of a pool.

ConnectionT = TypeVar("ConnectionT")


class IdlePool(Generic[ConnectionT]):
    """Keeps a few idle connections. All threads may use it.

    In a forked process, the pool is empty.
    """

    def __init__(self, close: Callable[[ConnectionT], None]):
        """Creates an empty pool.

        Args:
          close: Closes a connection.
        """
        self._close = close
        # The garbage collector may close a generator, which then keeps its connection
        # here, in any thread, even in one that holds the lock.
        self._lock = threading.RLock()
        self._idle: list[ConnectionT] = []
        _POOLS.add(self)

    def take(self) -> ConnectionT | None:
        """Removes and returns the connection that was kept last, or None."""
        with self._lock:
            return self._idle.pop() if self._idle else None

    def keep(self, connection: ConnectionT) -> None:
        """Keeps a connection, or closes it if there are enough."""
        with self._lock:
            if len(self._idle) < _MOST:
                self._idle.append(connection)
                return
        self._close(connection)

    def clear(self) -> None:
        """Closes all idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            self._close(connection)


_POOLS: weakref.WeakSet[IdlePool] = weakref.WeakSet()


def _after_fork() -> None:
    # The connections belong to the parent, and a thread of the parent may hold the
    # lock.
    for pool in list(_POOLS):
        pool._lock = threading.RLock()
        pool._idle = []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
