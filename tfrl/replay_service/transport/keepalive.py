"""Notices that the host at the other end of a TCP connection is gone.

Without this, a connection to a host that lost its power or its network stays open for
fifteen minutes or longer. A process that is merely busy or stopped keeps its
connections, because its system answers for it.
"""

from __future__ import annotations

import contextlib
import socket

PERIOD = 10.0  # Seconds after which a waiting side should call `is_dead` again.
# A silent connection gets two probes after 20 seconds, with 5 seconds for each.
_OPTIONS = (
    ("TCP_KEEPIDLE", 20),  # Linux, Windows.
    ("TCP_KEEPALIVE", 20),  # macOS.
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 2),
)
# The system sends data again after pauses that double, the first of 0.2 s or more. So
# this number of pauses takes 25 s or more. `TCP_USER_TIMEOUT` would also end the
# connection of a client that does not read for this time.
_MOST_REPEATED = 7
_FIRST_FIELDS = 4  # Bytes of `struct tcp_info`: two states, retransmits, and probes.


def enable(connection: socket.socket) -> None:
    """Makes the system probe the other end of a silent connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS:
        option = getattr(socket, name, None)
        if option is not None:
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, option, value)


def is_dead(connection: socket.socket) -> bool:
    """Returns whether the other end has left data unanswered for half a minute.

    Systems other than Linux do not report this; they give up such a connection later.
    """
    option = getattr(socket, "TCP_INFO", None)
    if option is None:
        return False
    try:
        fields = connection.getsockopt(socket.IPPROTO_TCP, option, _FIRST_FIELDS)
    except OSError:  # A Unix socket.
        return False
    return max(fields[2:_FIRST_FIELDS]) >= _MOST_REPEATED
