"""The replay servers of a run, and tables of messages; imports no TensorFlow.

>>> from tfrl.distribute import replay_servers
>>> servers = replay_servers.FixedServers(("host-a:8000", "host-b:8000"))
>>> servers.first, len(servers.addresses())
('host-a:8000', 2)
"""

from __future__ import annotations

import dataclasses
import logging
import pathlib
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, Protocol

import numpy as np

from tfrl import replay_service
from tfrl.distribute.shards.shard import SILENCE, in_daemon_thread
from tfrl.replay_service import errors, server_process
from tfrl.specs import array_spec
from tfrl.system import child_process

_LOGGER = logging.getLogger("tfrl.distribute")
_PATIENCE = 1.0  # The number of seconds to wait for an answer.
_PAUSE = 5.0  # The number of seconds until the next attempt after a failure.
# The number of seconds for a short call, such as a push of weights.
SHORT = 10.0
_LEAST_BYTES = 1024  # Of a message.


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
        made = in_daemon_thread(call)
        futures.wait([made], seconds)
        if not made.done():
            self._hanging = made
            raise errors.DeadlineExceededError(f"a call takes over {seconds:g} s")
        made.result()


class SupervisedServer:
    """A server that a supervisor can start again with the same port."""

    def __init__(
        self,
        make_server: Callable[[int | None], replay_service.Server],
        port: int | None = None,
    ) -> None:
        """Starts the server.

        Args:
          make_server: Starts the server with a port; None takes any free port.
          port: The port of the first start.
        """
        self._make = make_server
        self._server = self._make(port)
        self._killed_at_start: str | None = None

    @property
    def port(self) -> int:
        """The port, which stays the same."""
        return self._server.port

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return self._server.pid

    def start(self, starts: int) -> SupervisedServer:
        """Starts the server again, if this is not its first start."""
        self._killed_at_start = None
        if starts:
            try:
                self._server = self._make(self._server.port)
            except server_process.KilledAtStartError as error:
                self._killed_at_start = error.how
        return self

    def poll(self) -> child_process.Ending | None:
        """Returns how the server has died; None while it runs."""
        how = self._killed_at_start or self._server.how_it_died()
        return None if how is None else child_process.Ending(how)

    def stop(self, grace: float) -> None:
        """Stops the server."""
        del grace  # A server takes two seconds at most.
        self._server.stop()


def make_server(
    tables: Sequence[replay_service.Table],
    directory: pathlib.Path,
    port: int | None = None,
    host: str = "localhost",
    token: str | None = None,
) -> replay_service.Server:
    """Starts a server of tables, with its last checkpoint if there is one.

    Args:
      tables: The tables.
      directory: The directory of the checkpoints.
      port: The port; None for any free one.
      host: The interface to listen on.
      token: See `replay_service.Server`.

    Raises:
      OSError: The port is in use.
    """
    checkpointer = replay_service.checkpointers.DefaultCheckpointer(directory)
    return replay_service.Server(tables, port, checkpointer, host=host, token=token)


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
