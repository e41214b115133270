"""One of several replay servers, and the keys of its items, for a client of all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any, TypeVar

import numpy as np

from tfrl import replay_service
from tfrl.replay_service import errors, table_info

# The errors of a call if a server does not answer.
SILENCE = (errors.DeadlineExceededError, errors.ReplayUnavailable)
# A server's key has the number of the item's insert in its upper 32 bits and the item's
# row in the lower 32, see `replay_service.engine.tables.columns`. A table of at most
# `MOST_ITEMS` items leaves the upper 8 bits of the row at zero. A client puts the
# number of the shard there when it receives the key and takes it away when it sends the
# key. So servers, their messages and their checkpoints know nothing of shards.
MOST_SHARDS = 256
# A table has slightly more rows than items.
MOST_ITEMS = (1 << 24) - 1024

_SHIFT = np.uint64(24)
_MASK = np.uint64((MOST_SHARDS - 1) << 24)


class Shard:
    """A server, and the last known state of its table.

    Attributes:
      number: The number of the shard, from 0.
      address: The server's address, which changes if the server starts elsewhere.
      client: A client of the server.
      is_alive: Whether the server answered last time.
      size: The number of items in its table.
      mass: The sum of the weights by which the table draws its items.
    """

    def __init__(
        self, number: int, address: str, table: str, access: dict[str, Any]
    ) -> None:
        """Makes a client without connecting.

        Args:
          number: The number of the shard.
          address: The server's address.
          table: The name of the table.
          access: Further arguments of `replay_service.Client`.

        Raises:
          ValueError: If the address has no port.
        """
        self.number = number
        self.address = address
        self.client = replay_service.Client(address, **access)
        self.is_alive = False
        self.size = 0
        self.mass = 0.0
        self._table = table
        self._access = access
        self._exponent: float | None = None

    def move(self, address: str) -> None:
        """Replaces the server's address."""
        self.client = replay_service.Client(address, **self._access)
        self.address = address

    def refresh(self, timeout: float) -> table_info.TableInfo | None:
        """Asks the server for its table; returns None if it does not answer.

        Args:
          timeout: The number of seconds to wait.

        Raises:
          ValueError: If the server has no such table.
        """
        try:
            infos = self.client.server_info(timeout)
        except SILENCE:
            self.is_alive = False
            return None
        if self._table not in infos:
            raise ValueError(
                f"table: got {self._table!r}, but the server of shard {self.number} at "
                f"{self.address} has {', '.join(sorted(infos))}; give all servers the "
                "same tables."
            )
        info = infos[self._table]
        self.size, self.mass = info.current_size, info.total_weight
        if info.sampler_options.HasField("prioritized"):
            self._exponent = info.sampler_options.prioritized.priority_exponent
        self.is_alive = True
        return info

    def learn(self, probability: float, table_size: int, priority: float) -> None:
        """Takes the size and the mass of the table from the info of a sample."""
        self.size = table_size
        if self._exponent is None:
            self.mass = float(table_size)
        elif priority > 0.0:
            # The server computes probability = priority**exponent / mass.
            self.mass = priority**self._exponent / probability


def tagged_keys(keys: np.ndarray, shard: int) -> np.ndarray:
    """Puts the number of a server's shard into its keys, uint64 `[N]`.

    Args:
      keys: The keys that the server has sent, uint64 `[N]`.
      shard: The number of the shard, below `MOST_SHARDS`.
    """
    return keys | np.uint64(shard) << _SHIFT


def split_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the shard of each key, int64 `[N]`, and the server's key, uint64 `[N]`.

    Args:
      keys: uint64 `[N]`, results of `tagged_keys`.
    """
    keys = np.asarray(keys, np.uint64)
    return ((keys & _MASK) >> _SHIFT).astype(np.int64), keys & ~_MASK


_T = TypeVar("_T")


def in_daemon_thread(function: Callable[[], _T]) -> futures.Future[_T]:
    """Calls a function in a thread that does not keep the process alive.

    The threads of an executor do.

    Args:
      function: The function.

    Returns:
      A future of its result, or of the exception that it raises.
    """
    future: futures.Future[_T] = futures.Future()

    def call() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return future
