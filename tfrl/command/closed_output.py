"""Ends a command in silence when the reader of its output has gone, as `head` does."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def ends_in_silence() -> Iterator[None]:
    """Leaves this context in silence once standard output has been closed.

    `tfrl list settings | head -1` ends with status 0. So does a command that was
    started without standard output, for which `sys.stdout` is None.
    """
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _is_closed():
            raise
        # Python flushes standard output once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_closed() -> bool:
    """Whether the pipe to which standard output writes has no reader.

    A broken pipe to another process is an error. Windows, which has no `select.poll`,
    does not raise BrokenPipeError for standard output.
    """
    if sys.platform == "win32":
        return False
    waiting = select.poll()
    waiting.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in waiting.poll(0))
