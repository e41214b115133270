"""`OrphanGuard` ends processes that outlive this process.

The children of `child_process` end with their parent. This module is for the children
of other libraries, which may hang when their parent is killed. A killed process runs no
handlers that could end its children, so a small separate process waits for its end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence

from tfrl.system import interpreter, posix

if sys.platform == "win32":
    raise ImportError("Windows has no process that could guard others so.")

_CODE = (
    "from tfrl.system import orphan_guard; orphan_guard.main(*map(int, sys.argv[1:]))"
)
_GRACE = 1.0  # Seconds within which processes may end by themselves.


class OrphanGuard:
    """Kills processes a second after this process has ended, on POSIX systems."""

    def __init__(self, pids: Sequence[int]):
        """Starts the process that waits.

        Args:
          pids: The ids of the processes.

        Raises:
          OSError: If the process cannot be started.
        """
        process = interpreter.start(
            _CODE,
            [os.getpid(), *pids],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        self._dismiss = weakref.finalize(self, _end, process, os.getpid())
        # The guard waits for the end of the program.
        self._dismiss.atexit = False

    def dismiss(self) -> None:
        """Ends the guard, and leaves the processes alone."""
        self._dismiss()


def main(parent: int, *pids: int) -> None:
    """Waits for the end of the parent, and then kills the processes that are left.

    Args:
      parent: The process id of the parent, which holds the other end of stdin.
      *pids: The ids of the processes.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handles = [_open(pid) for pid in pids]
    posix.wait_for_end_of(parent, sys.stdin.fileno())
    time.sleep(_GRACE)
    for pid, handle in zip(pids, handles, strict=True):
        with contextlib.suppress(OSError):
            if handle is None:
                os.kill(pid, signal.SIGKILL)
            else:
                signal.pidfd_send_signal(handle, signal.SIGKILL)


def _open(pid: int) -> int | None:
    """Returns a handle of a process, which stays valid if its id is reused, or None."""
    with contextlib.suppress(AttributeError, OSError):  # Only Linux has such handles.
        return os.pidfd_open(pid)
    return None


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:  # A fork has no guard.
        process.kill()
        process.communicate()
