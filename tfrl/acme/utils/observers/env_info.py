"""`EnvInfoObserver`: sums of the numbers in an environment's info."""

from __future__ import annotations

from typing import Any

import dm_env
import numpy as np
from typing_extensions import override

from tfrl.acme.utils.observers import base


class EnvInfoObserver(base.EnvLoopObserver):
    """Logs the sums over an episode of the numbers of `environment.get_info()`.

    Without `get_info` nothing is logged.
    """

    def __init__(self) -> None:
        """Creates the observer."""
        self._sums: dict[str, Any] = {}

    @override
    def observe_first(self, env: dm_env.Environment, timestep: dm_env.TimeStep) -> None:
        """Starts an episode."""
        self._sums = {}
        self._add(env)

    @override
    def observe(
        self, env: dm_env.Environment, timestep: dm_env.TimeStep, action: Any
    ) -> None:
        """Takes the environment after a step."""
        self._add(env)

    def get_metrics(self) -> dict[str, Any]:
        """Returns the sums of the episode."""
        return self._sums

    def _add(self, env: dm_env.Environment) -> None:
        info = env.get_info() if hasattr(env, "get_info") else None
        for name, value in (info or {}).items():
            if np.isscalar(value):
                self._sums[name] = self._sums.get(name, 0) + value
