"""Reports a step of an environment in Python, or a compilation, that takes long."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from tfrl.environments.boundary import running_steps


@contextlib.contextmanager
def named(note: Callable[[str], None], seconds: float = 10.0) -> Iterator[None]:
    """Calls `note` with a line about each step or compilation that takes long.

    Args:
      note: Writes a line. It is called on another thread.
      seconds: The time after which a step is reported first; it is reported again
        whenever the time has doubled.
    """
    ended = threading.Event()

    def watch() -> None:
        running, since, limit = None, 0.0, seconds
        while not ended.wait(seconds / 10):
            now = running_steps.describe()
            if now != running:
                running, since, limit = now, time.monotonic(), seconds
            elif running is not None and time.monotonic() - since >= limit:
                note(f"{running} has taken {limit:g} seconds so far.")
                limit *= 2

    watcher = threading.Thread(target=watch, name="slow steps", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
