"""`ContinuousActionObserver`: statistics of actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dm_env
from typing_extensions import override

from tfrl.acme.utils.observers import base


class ContinuousActionObserver(base.EnvLoopObserver):
    """Logs `action[i]_max`, `_min`, `_mean` and `_p50` of each entry of an action."""

    def __init__(self) -> None:
        """Creates the observer."""
        self._actions: list[Any] = []

    @override
    def observe_first(self, env: dm_env.Environment, timestep: dm_env.TimeStep) -> None:
        """Starts an episode."""
        self._actions = []

    @override
    def observe(
        self, env: dm_env.Environment, timestep: dm_env.TimeStep, action: Any
    ) -> None:
        """Takes an action."""
        self._actions.append(action)

    def get_metrics(self) -> Mapping[str, Any]:
        """Returns the statistics of the episode."""
        return base.of_entries("action", self._actions, [50])
