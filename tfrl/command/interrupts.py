"""Ends a command that a signal has stopped, without a traceback."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator

from tfrl.system import interrupts

STATUS = 130  # What shells give a program that Ctrl-C has ended.


def install() -> None:
    """Lets Ctrl-C end this process with status 130 and without a traceback."""
    show = sys.excepthook

    def exit_or_show(
        kind: type[BaseException],
        error: BaseException,
        trace: types.TracebackType | None,
    ) -> None:
        if is_interrupt(error):
            sys.exit(STATUS)
        show(kind, error, trace)

    sys.excepthook = exit_or_show


@contextlib.contextmanager
def resumable() -> Iterator[None]:
    """Says how to resume runs that a signal has stopped; exits with its status."""
    try:
        yield
    except (KeyboardInterrupt, interrupts.Terminated):
        print("Interrupted. Run the same command again to resume.")
        sys.exit(interrupts.exit_status())


def is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C raised an error, or another error that caused it.

    A module that is interrupted while it is imported may raise an ImportError.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
