"""The addresses of servers, and who can reach them."""

from __future__ import annotations

import ipaddress


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


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
