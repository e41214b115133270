"""One of several replay servers, for a client of all of them."""

from __future__ import annotations

from typing import Any

from tfrl import replay_service
from tfrl.replay_service import errors, table_info

# The errors of a call if a server does not answer.
SILENCE = (errors.DeadlineExceededError, errors.ReplayUnavailable)


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
