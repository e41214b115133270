"""The addresses of servers, who can reach them, and which are this process's own.

A client keeps trying to reach a server that does not answer, because another server may
start at its address. When a server of its own process dies, nobody else starts one.

>>> from tfrl.replay_service.transport import addresses
>>> death = lambda wait: "The server died."
>>> addresses.add_own_server(8000, death)
>>> addresses.death_of("localhost:8000")
'The server died.'
>>> addresses.remove_own_server(8000, death)
>>> addresses.death_of("localhost:8000")
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable

LOOPBACK = ("localhost", "127.", "[::1]", "::1", "0.0.0.0")

_deaths: dict[int, Callable[[float], str | None]] = {}


def join(host: str, port: int) -> str:
    """Returns "host:port", with brackets around a host that contains colons."""
    host = host.strip("[]")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split(address: str) -> tuple[str, int]:
    """Returns the host, without brackets, and the port of "host:port".

    Raises:
      ValueError: If there is no port, or the port is out of range.
    """
    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(
            f"server_address: got {address!r}, expected 'host:port', such as "
            "'localhost:8000'."
        )
    return host.strip("[]"), int(port)


def check_exposure(host: str, token: str | None) -> None:
    """Checks that a server that other hosts can reach has a token.

    Raises:
      ValueError: If other hosts can reach the server, but there is no token.
    """
    if not token and not _is_loopback(host):  # An empty token does not count.
        raise ValueError(
            f"host: got {host!r}, which other hosts can reach, expected a token with "
            "it; pass token=... or set TFRL_REPLAY_TOKEN, for clients as well, or "
            'listen on "localhost".'
        )


def add_own_server(port: int, death: Callable[[float], str | None]) -> None:
    """Adds a server of this process, which replaces an earlier one on its port.

    Args:
      port: The port that the server listens on.
      death: Returns a text that says how the server died, or None if it is alive. The
        argument is the number of seconds to wait for its end.
    """
    _deaths[port] = death


def remove_own_server(port: int, death: Callable[[float], str | None]) -> None:
    """Removes a server, unless a later one has taken its port; see `add_own_server`."""
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


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


if hasattr(os, "register_at_fork"):
    # A forked process is not the parent of its parent's servers.
    os.register_at_fork(after_in_child=_deaths.clear)
