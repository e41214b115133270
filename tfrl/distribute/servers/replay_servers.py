"""The replay servers of a run: their addresses, and calls of the central one."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable
from typing import Protocol

from tfrl import replay_service
from tfrl.distribute.shards.shard import SILENCE

_LOGGER = logging.getLogger("tfrl.distribute")
_PATIENCE = 1.0  # The number of seconds to wait for an answer.
_PAUSE = 5.0  # The number of seconds until the next attempt after a failure.


class Servers(Protocol):
    """The replay servers of a run, which are the shards of its replay."""

    @property
    def first(self) -> str:
        """The address of shard 0, the central server."""

    def addresses(self) -> list[str]:
        """Returns the current address of each shard, in order."""


@dataclasses.dataclass(frozen=True)
class FixedServers:
    """Servers that keep their addresses when they are started again.

    Attributes:
      known: The address of each shard, "host:port".
    """

    known: tuple[str, ...]

    @property
    def first(self) -> str:
        """The address of shard 0."""
        return self.known[0]

    def addresses(self) -> list[str]:
        """Returns the address of each shard."""
        return list(self.known)


class CentralServer:
    """Shard 0, which has the tables of weights and reports, too.

    If it is the only server, a process that loses it ends, and is started again. If
    there are other servers, training continues with them, and weights and reports wait
    until it is back.

    Attributes:
      client: A client of the server.
    """

    def __init__(
        self, servers: Servers, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Makes a client without connecting.

        Args:
          servers: All servers.
          now: The clock, in seconds.
        """
        self.client = replay_service.Client(servers.first)
        self._is_only = len(servers.addresses()) == 1
        self._now = now
        self._due = float("-inf")

    def attempt(self, call: Callable[[], object]) -> None:
        """Calls a function that uses the server, unless the server is known to be gone.

        Args:
          call: The function.

        Raises:
          ReplayUnavailable: The only server does not answer.
          Exception: Any other error of the function.
        """
        if self._is_only:
            call()
            return
        if self._now() < self._due:
            return
        try:
            # The function itself would wait for the server much longer.
            self.client.server_info(_PATIENCE)
            call()
        except SILENCE as error:
            self._due = self._now() + _PAUSE
            _LOGGER.warning(
                "The replay server at %s does not answer (%s): weights and reports "
                "wait until it does.",
                self.client.server_address,
                str(error).rstrip("."),
            )
