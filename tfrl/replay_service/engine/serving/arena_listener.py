"""Sends the files that hold a server's steps to processes of the same host.

A client of the Unix socket sends one line of JSON, {"secret": ..., "schema": ...}. It
receives one line of JSON: either `StepStore.description`, together with the file's
descriptor, or {"error": ...}.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import socket
import sys
from collections.abc import Callable
from typing import Any

from tfrl.replay_service.engine.storage import step_store

if sys.platform == "win32":
    raise ImportError("Windows cannot pass memory from one process to another.")

_PATIENCE = 5.0  # Seconds for a client's whole request.
_MOST_REQUEST = 4096  # Bytes.
_MOST_CLIENTS = 64  # Served concurrently; others wait in the socket's queue.
_QUEUE = 1024


class ArenaListener:
    """Answers requests for files on a Unix socket, in the running asyncio loop."""

    def __init__(
        self,
        path: str,
        secret: str,
        find: Callable[[Any], step_store.StepStore | None],
    ):
        """Creates the socket and starts to listen.

        Args:
          path: The path of the new socket, in a directory that only this user can
            enter.
          secret: The secret that clients must send.
          find: Returns the store of a schema's id, or None. The id can be any JSON
            value, because it comes from the client.

        Raises:
          OSError: If the system has no Unix sockets, or the path is in use or too long.
        """
        if not (hasattr(socket, "AF_UNIX") and hasattr(socket, "send_fds")):
            raise OSError("This system cannot pass memory from one process to another.")
        self._secret = secret.encode()
        self._find = find
        self._clients: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_MOST_CLIENTS)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.setblocking(False)
            self._socket.bind(path)
            self._socket.listen(_QUEUE)
        except BaseException:
            self._socket.close()
            raise
        self._accepting = asyncio.get_running_loop().create_task(self._accept())
        # The socket must stay open while the loop uses it.
        self._accepting.add_done_callback(lambda _: self._socket.close())

    def close(self) -> None:
        """Stops listening and drops the current clients."""
        self._accepting.cancel()
        for client in self._clients:
            client.cancel()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._room.acquire()
            try:
                connection, _ = await loop.sock_accept(self._socket)
            except OSError:  # For example, too many open files.
                self._room.release()
                await asyncio.sleep(0.1)
                continue
            client = loop.create_task(self._serve(connection))
            self._clients.add(client)
            client.add_done_callback(self._left)

    def _left(self, client: asyncio.Task[None]) -> None:
        self._clients.discard(client)
        self._room.release()

    async def _serve(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        # Silent, slow and disconnected clients are dropped.
        with connection, contextlib.suppress(OSError, TimeoutError):
            connection.setblocking(False)
            async with asyncio.timeout(_PATIENCE):
                request = b""
                while not request.endswith(b"\n") and len(request) <= _MOST_REQUEST:
                    chunk = await loop.sock_recv(connection, _MOST_REQUEST)
                    if not chunk:
                        return
                    request += chunk
                fd, reply = self._answer(request)
                data = json.dumps(reply).encode() + b"\n"
                sent = socket.send_fds(connection, [data], [] if fd is None else [fd])
                await loop.sock_sendall(connection, data[sent:])

    def _answer(self, request: bytes) -> tuple[int | None, dict[str, Any]]:
        """Returns the answer to a request: a descriptor or None, and a JSON object."""
        try:
            wanted = json.loads(request)
            secret = str(wanted["secret"]).encode()
            schema = wanted["schema"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None, {"error": "The request is malformed."}
        if not hmac.compare_digest(secret, self._secret):
            return None, {"error": "The secret is another server's."}
        try:
            store = self._find(schema)
        except (TypeError, LookupError):
            store = None
        if store is None:
            return None, {"error": f"There are no steps of schema {schema!r:.80}."}
        if store.fd is None:
            return None, {"error": "The steps are not in memory that can be shared."}
        return store.fd, store.description()
