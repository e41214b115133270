"""An environment whose steps take longer, without a core."""

from __future__ import annotations

import time
from typing import Any

import gymnasium


class Waiting(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Waits before each step."""

    def __init__(self, env: gymnasium.Env[Any, Any], seconds: float) -> None:
        """Wraps `env`, whose steps then take so many seconds more."""
        super().__init__(env)
        self._seconds = seconds

    def step(self, action: Any) -> Any:
        """Waits, and steps."""
        time.sleep(self._seconds)
        return self.env.step(action)


def make(environment: str, waits: float) -> gymnasium.Env[Any, Any]:
    """Makes an environment by its name; one that waits if `waits` is not 0."""
    made = gymnasium.make(environment)
    return Waiting(made, waits) if waits else made
