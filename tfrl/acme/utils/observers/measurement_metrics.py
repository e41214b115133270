"""`MeasurementObserver`: statistics of observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np
from typing_extensions import override

from tfrl.acme.utils.observers import base


class MeasurementObserver(base.EnvLoopObserver):
    """Logs `measurement[i]_max`, `_min`, `_mean`, `_p25`, `_p50` and `_p75`.

    The observations after an episode's first are arrays of one shape, with few entries.
    """

    def __init__(self) -> None:
        """Creates the observer."""
        self._measurements: list[np.ndarray] = []

    @override
    def observe_first(self, env: dm_env.Environment, timestep: dm_env.TimeStep) -> None:
        """Starts an episode."""
        self._measurements = []

    @override
    def observe(
        self, env: dm_env.Environment, timestep: dm_env.TimeStep, action: Any
    ) -> None:
        """Takes an observation."""
        self._measurements.append(timestep.observation)

    def get_metrics(self) -> Mapping[str, Any]:
        """Returns the statistics of the episode."""
        return base.of_entries("measurement", self._measurements, [25, 50, 75])
