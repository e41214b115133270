"""Tells which environments in Python are in a step, and which loops compile."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Protocol


class Stepping(Protocol):
    """An environment or a loop that knows what a signal would have to wait for."""

    def running_step(self) -> str | None:
        """Returns the step that is running and its environment's name, or None."""


_environments: weakref.WeakSet[Stepping] = weakref.WeakSet()
_lock = threading.Lock()


def register(environment: Stepping) -> None:
    """Adds an environment or a loop to those that `describe` asks while they exist."""
    with _lock:
        _environments.add(environment)


def describe() -> str | None:
    """Returns the steps that are running, such as "step 17 of CartPole-v1", or None.

    Any thread may call it.
    """
    with _lock:
        environments = list(_environments)
    found = [environment.running_step() for environment in environments]
    return " and ".join(step for step in found if step is not None) or None


@contextlib.contextmanager
def naming_slow(note: Callable[[str], None], seconds: float = 10.0) -> Iterator[None]:
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
            now = describe()
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
