"""Bandits of the user's Python functions, with nests of features of arms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfrl.bandits.environments import bandit_py_environment


class StationaryStochasticStructuredPyEnvironment(
    bandit_py_environment.FeaturesPyEnvironment
):
    """Features are nests that functions draw, which have seeds of their own."""

    def __init__(
        self,
        global_context_sampling_fn: Callable[[], Any],
        arm_context_sampling_fn: Callable[[], Any],
        num_actions: int,
        reward_fn: Callable[[Any, Any], Any],
        batch_size: int | None = 1,
        name: str | None = "stationary_stochastic_structured",
        *,
        further_spec: dict[str, Any] | None = None,
    ) -> None:
        """Stores the functions.

        Args:
          global_context_sampling_fn: Draws the features that all arms share.
          arm_context_sampling_fn: Draws the features of an arm.
          num_actions: The number of arms.
          reward_fn: `reward_fn(global, arm)` draws the reward of an arm's features.
          batch_size: The number of members.
          name: The environment's name.
          further_spec: The specs of what a subclass adds to the observation.
        """
        self._reward_fn = reward_fn
        super().__init__(
            global_context_sampling_fn,
            arm_context_sampling_fn,
            num_actions,
            batch_size,
            name=name,
            further_spec=further_spec,
        )

    def _apply_action(self, action: Any) -> Any:
        return np.stack([self._reward_fn(*each) for each in self._features_of(action)])
