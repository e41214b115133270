"""The replay servers of a run: their addresses, and calls of the central one."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable
from concurrent import futures
from typing import Protocol

from tfrl import replay_service
from tfrl.distribute.shards.shard import SILENCE
from tfrl.replay_service import errors
from tfrl.system import daemon_calls

_LOGGER = logging.getLogger("tfrl.distribute")
_PATIENCE = 1.0  # The number of seconds to wait for an answer.
_PAUSE = 5.0  # The number of seconds until the next attempt after a failure.
# The number of seconds for a short call, such as a push of weights.
SHORT = 10.0


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
        self._hanging: futures.Future[object] | None = None

    def attempt(
        self, call: Callable[[], object], *, within: float | None = None
    ) -> None:
        """Calls a function that uses the server, unless the server is known to be gone.

        Args:
          call: The function.
          within: The number of seconds after which the call counts as hanging, since
            the server may have stopped in the middle of it. The call stays in its
            thread, and nothing else is called until it ends. None waits for the call.

        Raises:
          ReplayUnavailable: The only server does not answer.
          Exception: Any other error of the function.
        """
        if self._is_only:
            call()
            return
        if self._now() < self._due or (self._hanging and not self._hanging.done()):
            return
        try:
            # The function itself would wait for the server much longer.
            self.client.server_info(_PATIENCE)
            if within is None:
                call()
            else:
                self._call_within(call, within)
        except SILENCE as error:
            self._due = self._now() + _PAUSE
            _LOGGER.warning(
                "The replay server at %s does not answer (%s): weights and reports "
                "wait until it does.",
                self.client.server_address,
                str(error).rstrip("."),
            )

    def _call_within(self, call: Callable[[], object], seconds: float) -> None:
        """Calls a function in a thread.

        Raises:
          DeadlineExceededError: It takes longer.
        """
        made = daemon_calls.start(call)
        futures.wait([made], seconds)
        if not made.done():
            self._hanging = made
            raise errors.DeadlineExceededError(f"a call takes over {seconds:g} s")
        made.result()
