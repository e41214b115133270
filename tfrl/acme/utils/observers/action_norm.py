"""`ActionNormObserver`: the norms of actions."""

from __future__ import annotations

from typing import Any

import dm_env
import numpy as np
from typing_extensions import override

from tfrl.acme.utils.observers import base


class ActionNormObserver(base.EnvLoopObserver):
    """Logs the mean, smallest and largest Euclidean norm of an episode's actions."""

    def __init__(self) -> None:
        """Creates the observer."""
        self._norms: list[Any] = []

    @override
    def observe_first(self, env: dm_env.Environment, timestep: dm_env.TimeStep) -> None:
        """Starts an episode."""
        self._norms = []

    @override
    def observe(
        self, env: dm_env.Environment, timestep: dm_env.TimeStep, action: Any
    ) -> None:
        """Takes an action."""
        self._norms.append(np.linalg.norm(action))

    def get_metrics(self) -> dict[str, Any]:
        """Returns the numbers of the episode."""
        return {
            "action_norm_avg": np.mean(self._norms),
            "action_norm_min": np.min(self._norms),
            "action_norm_max": np.max(self._norms),
        }
