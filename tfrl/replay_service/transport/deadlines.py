"""Deadlines of calls, in seconds of `time.monotonic`; None means no limit."""

from __future__ import annotations

import time


def after(timeout: float | None) -> float | None:
    """Returns the deadline of a call that starts now.

    Args:
      timeout: The number of seconds; None for no limit.
    """
    return None if timeout is None else time.monotonic() + timeout


def remaining(deadline: float | None) -> float | None:
    """Returns the number of seconds until a deadline, at least 0."""
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)
