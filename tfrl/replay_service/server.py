"""The replay server, which holds tables in a separate process.

The server's process ends when `Server.stop` is called or its parent process ends. The
command `tfrl replay-server` starts an independent server.
"""

from __future__ import annotations

import collections
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfrl.replay_service import (
    checkpointers,
    errors,
    server_process,
    server_settings,
    table_info,
)
from tfrl.replay_service.table import Table as Table
from tfrl.replay_service.table import TableExtensionBase as TableExtensionBase
from tfrl.replay_service.transport import addresses, connection

if TYPE_CHECKING:
    from tfrl.replay_service.client import Client

_EVERYWHERE = ("0.0.0.0", "::", "[::]")
_POLL = 0.5  # Seconds between checks whether the server has ended.


class Server:
    """A replay server in a child process. It ends when this process ends.

    Clients on this host connect to `localhost:<port>`.
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
        """Starts a server and waits until clients can connect.

        Args:
          tables: The tables.
          port: The port to listen on; None for any free port.
          checkpointer: Determines where checkpoints are kept; by default in a temporary
            directory. The server starts from the latest checkpoint, if there is one.
          host: The interface to listen on. The default only admits clients on this
            host. Use "0.0.0.0" and a token for clients on other hosts.
          token: The token that clients must present; by default the environment
            variable TFRL_REPLAY_TOKEN.
          tls: A certificate chain and a private key (PEM), to encrypt connections; by
            default the files that the environment variables TFRL_REPLAY_TLS_CERTIFICATE
            and TFRL_REPLAY_TLS_KEY name.
          seed: The seed of the server's random choices; None for a random seed.

        Raises:
          ValueError: If an argument is invalid, two tables have the same name, other
            hosts can reach the server without a token, or a checkpoint does not fit the
            tables.
          OSError: If the port is in use or not available, or checkpoints cannot be
            written to the checkpointer's directory.
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
        server_settings.check(
            {"host": host, "port": port, "token": token, "seed": seed}
        )
        tls = server_settings.default_tls() if tls is None else tls
        server_settings.check_tls(tls)
        token = connection.default_token() if token is None else token
        addresses.check_exposure(host, token)
        temporary = None
        if checkpointer is None:
            checkpointer = checkpointers.TempDirCheckpointer()
            temporary = checkpointer.path
        self._checkpointer = checkpointer  # Keeps a temporary directory alive.
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
        """The port that the server listens on."""
        return self._process.port

    @property
    def pid(self) -> int:
        """The process id of the server's process."""
        return self._process.pid

    def how_it_died(self) -> str | None:
        """Returns how the process has ended, such as "was killed by SIGKILL".

        Returns None while it runs, and after `stop`.
        """
        return self._process.how_it_died()

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
        """Returns the description and the counts of the table with this name.

        Raises:
          ReplayUnavailable: If the server has been stopped.
        """
        if not self._finalizer.alive:
            raise errors.ReplayUnavailable(
                f"The server on port {self.port} has been stopped, with its tables."
            )
        with self._lock:
            if self._client is None:
                self._client = self.localhost_client()
        return self._client.server_info()[name]

    def stop(self) -> None:
        """Stops the server, within about two seconds."""
        self._finalizer()

    def wait(self) -> None:
        """Waits until another thread or an interrupt stops the server.

        Raises:
          KeyboardInterrupt: If this process was interrupted.
          RuntimeError: If the server has died.
        """
        while not self._process.wait(_POLL):
            pass

    def __repr__(self) -> str:
        """Returns a readable description."""
        return f"Server(port={self.port}, tables={self._tables})"
