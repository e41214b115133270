"""Tells which Python environments are in the middle of a step."""

from __future__ import annotations

import threading
import weakref
from typing import Protocol


class Stepping(Protocol):
    """An environment that knows whether one of its steps is running."""

    def running_step(self) -> str | None:
        """Returns the environment's name and the step that is running, or None."""


_environments: weakref.WeakSet[Stepping] = weakref.WeakSet()
_lock = threading.Lock()


def register(environment: Stepping) -> None:
    """Adds an environment to those that `describe` asks while they exist."""
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
