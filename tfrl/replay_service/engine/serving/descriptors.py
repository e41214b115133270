"""The number of files, including sockets, that the server may have open."""

from __future__ import annotations

import contextlib
import sys

_ENOUGH = 1 << 16
_ASSUMED = 512  # Assumed if the system does not report a limit.


def raise_limit() -> int:
    """Raises the limit of this process, if the system permits it; returns the limit."""
    if sys.platform == "win32":
        return _ASSUMED
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        # Some systems have a lower limit that they do not report.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft
