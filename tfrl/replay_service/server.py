"""The server that holds tables: a process of its own.

The process ends with the one that made the `Server`, or with `Server.stop`. One that
lives on its own is started by the command `tfrl-replay-server`.
"""

from __future__ import annotations

import collections
import os
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfrl.replay_service import checkpointers, errors, server_process, table_info
from tfrl.replay_service.table import Table as Table
from tfrl.replay_service.table import TableExtensionBase as TableExtensionBase
from tfrl.replay_service.transport import addresses

if TYPE_CHECKING:
    from tfrl.replay_service.client import Client

_EVERYWHERE = ("0.0.0.0", "::", "[::]")
_POLL = 0.5  # Seconds between looks at whether the server has ended.


class Server:
    """A server process of this one, which ends with it.

    The address for clients is `localhost:<port>`.
    """

    def __init__(
        self,
        tables: Sequence[Table] | None = None,
        port: int | None = None,
        checkpointer: checkpointers.CheckpointerBase | None = None,
        *,
        host: str = "localhost",
        token: str | None = None,
        tls: tuple[bytes, bytes] | None = None,
        seed: int | None = None,
    ):
        """Starts a server and waits until it can be reached.

        Args:
          tables: What it holds.
          port: On which it listens; None for one that is free.
          checkpointer: Where checkpoints are written, and from where the server starts
            if there is one; by default a temporary directory, so none.
          host: The interface it listens on: by default for this host only. Give
            "0.0.0.0" for clients on others, and a token.
          token: What clients have to know; by default the environment variable
            TFRL_REPLAY_TOKEN.
          tls: A certificate chain and a private key (PEM) by which connections are
            encrypted.
          seed: Of the server's random choices; None for other ones each time.

        Raises:
          ValueError: If there are no tables, two of one name, a host that others can
            reach without a token, or if a checkpoint does not fit the tables.
          OSError: If the port is in use or cannot be had.
          RuntimeError: If the process does not start.
        """
        if not tables:
            raise ValueError("At least one table must be provided")
        names = collections.Counter(table.name for table in tables)
        duplicates = [name for name, count in names.items() if count > 1]
        if duplicates:
            raise ValueError(
                "Multiple items in tables have the same name: " + ", ".join(duplicates)
            )
        token = os.environ.get("TFRL_REPLAY_TOKEN") or None if token is None else token
        addresses.check_exposure(host, token)
        temporary = None
        if checkpointer is None:
            checkpointer = checkpointers.TempDirCheckpointer()
            temporary = checkpointer.path
        self._checkpointer = checkpointer  # A temporary directory lasts as long as it.
        self._tables = list(tables)
        self._host = host
        self._token = token
        self._tls = tls
        self._client: Client | None = None
        self._lock = threading.Lock()
        config = {
            "tables": [table.to_config() for table in tables],
            "host": host,
            "port": port,
            "token": token,
            "tls": None if tls is None else [part.decode() for part in tls],
            "seed": seed,
            "checkpointer": checkpointer.to_config(),
            "temporary": temporary,
        }
        self._process = server_process.ServerProcess(config)
        self._finalizer = weakref.finalize(self, self._process.stop)
        for table in tables:
            table._server = weakref.ref(self)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._process.port

    def localhost_client(self) -> Client:
        """Returns a client of this server."""
        from tfrl.replay_service.client import Client

        host = "localhost" if self._host in _EVERYWHERE else self._host
        return Client(
            addresses.join(host, self.port),
            token=self._token,
            tls_root_certificates=None if self._tls is None else self._tls[0],
        )

    def table_info(self, name: str) -> table_info.TableInfo:
        """Returns what the server says of one of its tables.

        Raises:
          ReplayUnavailable: If it has been stopped.
        """
        if not self._finalizer.alive:
            raise errors.ReplayUnavailable(
                f"The server on port {self.port} has been stopped, and its tables with "
                "it."
            )
        with self._lock:
            if self._client is None:
                self._client = self.localhost_client()
            return self._client.server_info()[name]

    def stop(self) -> None:
        """Ends the server, within about two seconds; its clients lose it."""
        self._finalizer()

    def wait(self) -> None:
        """Waits until the server is stopped, by another thread or by an interrupt.

        Raises:
          KeyboardInterrupt: If this process was interrupted.
          RuntimeError: If the server has died by itself.
        """
        while not self._process.wait(_POLL):
            pass

    def __repr__(self) -> str:
        return f"Server(port={self.port}, tables={self._tables})"
