"""The servers that this process has started, so that its clients notice their end.

A client keeps trying to reach a server that does not answer, because another server may
start at its address. When a server of this process dies, nobody else starts one.

>>> from tfrl.replay_service.transport import own_servers
>>> death = lambda wait: "The server died."
>>> own_servers.add(8000, death)
>>> own_servers.death_of("localhost:8000")
'The server died.'
>>> own_servers.remove(8000, death)
>>> own_servers.death_of("localhost:8000")
"""

from __future__ import annotations

import os
from collections.abc import Callable

LOOPBACK = ("localhost", "127.", "[::1]", "::1", "0.0.0.0")

_deaths: dict[int, Callable[[float], str | None]] = {}


def add(port: int, death: Callable[[float], str | None]) -> None:
    """Adds a server, which replaces an earlier one on its port.

    Args:
      port: The port that the server listens on.
      death: Returns a text that says how the server died, or None if it is alive. The
        argument is the number of seconds to wait for its end.
    """
    _deaths[port] = death


def remove(port: int, death: Callable[[float], str | None]) -> None:
    """Removes a server, unless a later one has taken its port; see `add`."""
    if _deaths.get(port) == death:
        del _deaths[port]


def death_of(address: str, wait: float = 0.0) -> str | None:
    """Returns how the server at an address died; None if it is alive or not ours.

    Args:
      address: "host:port".
      wait: The number of seconds to wait for the end of a server that may be dying.
    """
    host, _, port = address.rpartition(":")
    if not host.startswith(LOOPBACK) or not port.isdigit():
        return None
    death = _deaths.get(int(port))
    return None if death is None else death(wait)


if hasattr(os, "register_at_fork"):
    # A forked process is not the parent of its parent's servers.
    os.register_at_fork(after_in_child=_deaths.clear)
