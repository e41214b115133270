"""A replay server that a supervisor starts again with its port and its contents."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence

from tfrl import replay_service
from tfrl.replay_service import server_process
from tfrl.system import function_process


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

    def poll(self) -> function_process.Ending | None:
        """Returns how the server has died; None while it runs."""
        how = self._killed_at_start or self._server.how_it_died()
        return None if how is None else function_process.Ending(how)

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
