"""Tells which environments in Python are in a step, and which loops compile."""

from __future__ import annotations

import threading
import weakref
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
