"""Where servers listen, and who can get there."""

from __future__ import annotations

import ipaddress


def join(host: str, port: int) -> str:
    """Returns "host:port", with brackets around a host that has colons itself."""
    host = host.strip("[]")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_exposure(host: str, token: str | None) -> None:
    """Checks that not everybody can come in from outside of this host.

    Raises:
      ValueError: If they can.
    """
    if not token and not _is_loopback(host):  # An empty one keeps nobody out.
        raise ValueError(
            f"host: {host!r} can be reached from other hosts, expected a token with "
            "it: pass token=... or set TFRL_REPLAY_TOKEN, for clients as well, or "
            'listen on "localhost".'
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
