"""Functions of POSIX systems for child processes, which cannot be started on Windows.

>>> import os
>>> from tfrl.system import posix
>>> posix.check("worker")
>>> reading, writing = os.pipe()
>>> posix.is_readable(reading), os.write(writing, b"x"), posix.is_readable(reading)
(False, 1, True)
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any

_REFUSAL = (
    "expected a POSIX system, such as Linux or macOS, to start this process, got "
    "Windows; do its work in your own process, for instance step environments in a "
    "BatchedPyEnvironment, or run the program in WSL."
)
_POLL_MILLISECONDS = 1000
_LONGEST_STACK = 1 << 14  # Bytes.


def check(name: str) -> None:
    """Checks that child processes can be started.

    Args:
      name: The name of the child process, for the error.

    Raises:
      NotImplementedError: On Windows.
    """
    if sys.platform == "win32":
        raise NotImplementedError(f"{name}: {_REFUSAL}")


def end_group(pid: int, kills: bool) -> None:
    """Ends a process and all processes of its group, if there are any.

    Args:
      pid: The process that leads the group.
      kills: Whether to use SIGKILL instead of SIGTERM.
    """
    if sys.platform == "win32":
        raise NotImplementedError(_REFUSAL)
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL if kills else signal.SIGTERM)


def stack(pid: int, file: int) -> str:
    """Returns the Python stack of a child, or "".

    Args:
      pid: The process, which writes its stack on SIGUSR1.
      file: The descriptor of the file to which it writes.
    """
    if sys.platform == "win32":
        raise NotImplementedError(_REFUSAL)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGUSR1)
    text = b""
    for _ in range(10):
        time.sleep(0.02)
        before, text = text, os.pread(file, _LONGEST_STACK, 0)
        if text and text == before:
            break
    return text.decode(errors="replace")


def wait_for_end_of(parent: int, lifeline: int) -> None:
    """Waits until the parent of this process has ended.

    Args:
      parent: Its process id, which is checked, too, because a fork of the parent would
        keep the pipe open.
      lifeline: The reading end of a pipe whose other end only the parent holds.
    """
    found = poller([lifeline])
    while not found.poll(_POLL_MILLISECONDS) and os.getppid() == parent:
        pass


def poller(descriptors: Iterable[int]) -> Any:
    """Returns a `select.poll` that reports which descriptors can be read."""
    if sys.platform == "win32":
        raise NotImplementedError(_REFUSAL)
    made = select.poll()
    for descriptor in descriptors:
        made.register(descriptor, select.POLLIN)
    return made


def is_readable(descriptor: int) -> bool:
    """Whether a descriptor can be read without waiting."""
    return bool(poller([descriptor]).poll(0))
