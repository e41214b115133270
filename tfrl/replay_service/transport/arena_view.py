"""Reads steps directly from the memory of a server on the same host."""

from __future__ import annotations

import json
import math
import mmap
import os
import socket
import sys
import threading
import weakref
from typing import Any

import numpy as np

from tfrl.specs import dtype_names

if sys.platform == "win32":
    raise ImportError("Windows cannot pass memory from one process to another.")

_TIMEOUT = 10.0  # Seconds for the server to answer.
_MOST_REPLY = 16 << 20  # Bytes; about 60 per column.
_ALIGNMENT = 64  # Columns start at multiples of this.

# The views, by the server's secret, which is unique, and the schema. A view is freed
# after its last use, together with the memory of a server that has ended.
_views: weakref.WeakValueDictionary[tuple[str, Any], ArenaView] = (
    weakref.WeakValueDictionary()
)
_lock = threading.Lock()  # Held for lookups only.


class ArenaView:
    """The columns of one schema of steps, in a server's memory.

    A row may only be read until its sample is released. Until then, the server does not
    overwrite it.

    Attributes:
      columns: One read-only array `[rows, *row shape]` per column. Most rows are not
        backed by memory.
    """

    def __init__(self, fd: int, description: dict[str, Any]):
        """Maps a server's file.

        Args:
          fd: A descriptor of the file. The caller may close it afterwards.
          description: The result of `StepStore.description` for the file.

        Raises:
          OSError: If the system refuses the mapping.
          KeyError, TypeError, ValueError: If the description does not fit the file.
        """
        size, rows = int(description["size"]), int(description["rows"])
        held = os.fstat(fd).st_size
        if not 0 < size <= held or rows < 0:
            raise ValueError(f"{size} bytes of a file of {held}")
        places = [_place(column, rows, size) for column in description["columns"]]
        mapping = mmap.mmap(fd, size, access=mmap.ACCESS_READ)
        self.columns: list[np.ndarray] = []
        for dtype, shape, offset in places:
            if math.prod(shape):
                count = math.prod(shape) * dtype.itemsize
                data = np.frombuffer(mapping, np.uint8, count, offset)
                self.columns.append(data.view(dtype).reshape(shape))
            else:
                self.columns.append(np.zeros(shape, dtype))


def attach(arena_socket: str, secret: str, schema_id: Any) -> ArenaView:
    """Returns a view of a schema's steps in a server's memory.

    A process maps the memory of each schema only once.

    Args:
      arena_socket: The path of the socket through which the server shares its memory.
      secret: The secret that the server has given to its clients on this host.
      schema_id: The schema's number in messages.

    Raises:
      OSError: If there is no server at the socket, it refuses the secret, it does not
        share the schema, or this system cannot map the memory.
    """
    key = (secret, schema_id)
    with _lock:
        view = _views.get(key)
    if view is None:
        made = _attach(arena_socket, secret, schema_id)
        with _lock:
            # Another thread may have been faster. Its view is used, and this one freed.
            view = _views.setdefault(key, made)
    return view


def _after_fork() -> None:
    # A thread of the parent may have held the lock.
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _attach(arena_socket: str, secret: str, schema_id: Any) -> ArenaView:
    if not (hasattr(socket, "AF_UNIX") and hasattr(socket, "recv_fds")):
        raise OSError("This system cannot pass memory from one process to another.")
    request = json.dumps({"secret": secret, "schema": schema_id}).encode() + b"\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT)
        connection.connect(arena_socket)
        connection.sendall(request)
        fds: list[int] = []
        try:
            reply = _receive(connection, fds)
            if "error" in reply:
                raise PermissionError(
                    f"The replay server does not share its memory: {reply['error']}"
                )
            if len(fds) != 1:
                raise OSError(f"The replay server sent {len(fds)} files, expected 1.")
            return ArenaView(fds[0], reply)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise OSError(
                f"The replay server sent an invalid description of its memory at "
                f"{arena_socket}: {error!r}."
            ) from None
        finally:
            for fd in fds:
                os.close(fd)


def _receive(connection: socket.socket, fds: list[int]) -> dict[str, Any]:
    """Returns the server's answer; adds the received descriptors to `fds`."""
    flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
    chunk, received, _, _ = socket.recv_fds(connection, 1 << 16, 1, flags)
    fds.extend(received)
    for fd in received:
        os.set_inheritable(fd, False)
    chunks = [chunk]
    length = len(chunk)
    while chunk and not chunk.endswith(b"\n") and length < _MOST_REPLY:
        chunk = connection.recv(1 << 16)
        chunks.append(chunk)
        length += len(chunk)
    if not chunks[-1].endswith(b"\n"):
        raise OSError("The replay server's answer about its memory ends early.")
    reply = json.loads(b"".join(chunks))
    if not isinstance(reply, dict):
        raise ValueError("no object")
    return reply


def _place(
    column: dict[str, Any], rows: int, size: int
) -> tuple[np.dtype, tuple[int, ...], int]:
    """Returns a column's dtype, shape and offset after checking them against `size`."""
    dtype = dtype_names.dtype_from_name(column["dtype"])
    shape = (rows, *(int(length) for length in column["shape"]))
    offset = int(column["offset"])
    end = offset + math.prod(shape) * dtype.itemsize
    if min(shape) < 0 or not 0 <= offset <= end <= size or offset % _ALIGNMENT:
        raise ValueError(f"a column {column} with {rows} rows in {size} bytes")
    return dtype, shape, offset
