"""The interface of observers of an `EnvironmentLoop`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import dm_env

if TYPE_CHECKING:
    from tfrl.typing import types

Number = int | float


class EnvLoopObserver(Protocol):
    """Measures an `EnvironmentLoop`'s episodes, for its logger."""

    def observe_first(self, env: dm_env.Environment, timestep: dm_env.TimeStep) -> Any:
        """Observes the first time step of an episode, and the environment after it."""

    def observe(
        self,
        env: dm_env.Environment,
        timestep: dm_env.TimeStep,
        action: types.NestedArray,
    ) -> Any:
        """Observes an action, its time step, and the environment after it."""

    def get_metrics(self) -> Mapping[str, Any]:
        """Returns the measurements of the episode that has just ended."""
