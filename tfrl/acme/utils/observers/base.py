"""The interface of observers of an `EnvironmentLoop`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import dm_env
import numpy as np

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


_FUNCTIONS: Mapping[str, Any] = {"max": np.max, "min": np.min, "mean": np.mean}


def of_entries(
    name: str, arrays: Sequence[np.ndarray], percentiles: Sequence[int]
) -> Mapping[str, Any]:
    """Returns the statistics of each entry, by names such as `action[0]_max`.

    Args:
      name: The start of the names.
      arrays: Arrays of one shape; without any, there are no statistics.
      percentiles: The percentiles to compute in addition to the extremes and the mean.
    """
    if not arrays:
        return {}
    results = {key: function(arrays, axis=0) for key, function in _FUNCTIONS.items()}
    for percentile in percentiles:
        results[f"p{percentile}"] = np.percentile(arrays, percentile, axis=0)
    return {
        f"{name}{list(index)}_{key}": result[index]
        for index in np.ndindex(np.shape(arrays[0]))
        for key, result in results.items()
    }
